// What scripts/lint holds the pages' scripts, their tests and their benchmarks against.
import js from "@eslint/js";
import globals from "globals";

const names = { argsIgnorePattern: "^_", varsIgnorePattern: "^_", destructuredArrayIgnorePattern: "^_" };

export default [
  js.configs.recommended,
  { rules: {
    "eqeqeq": "error",
    "no-unused-vars": ["error", names],
    "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
    "no-var": "error",
    "object-shorthand": "error",
    "prefer-const": "error",
  } },
  {
    files: ["src/lens/pages/**"],
    languageOptions: { globals: globals.browser },
    // What another module or a test needs is exported.
    rules: { "no-restricted-globals": ["error", "window", "globalThis"] },
  },
  {
    // Functions that are given to a browser have its globals.
    files: ["tests/**", "bench/**"],
    languageOptions: { sourceType: "commonjs", globals: { ...globals.node, ...globals.browser } },
  },
];
