#include "profiler/stacks/expression.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <vector>

namespace kymo::stacks {
namespace {

Operation operation(unsigned atom, std::uint64_t number = 0, std::uint64_t number2 = 0) {
  return {static_cast<std::uint8_t>(atom), number, number2};
}

std::optional<Evaluated> run(const std::vector<Operation>& operations) {
  Registers registers{};
  registers[kStackPointer] = 0x1000;
  registers[kReturnAddress] = 0x40102b;
  return evaluate(operations, registers, 0x2000, [](std::uint64_t address) {
    return address == 0x1008 ? std::optional<std::uint64_t>(77) : std::nullopt;
  });
}

TEST(ExpressionTest, ARegisterWithAnOffsetIsAnAddress) {
  EXPECT_EQ(run({operation(DW_OP_bregx, kStackPointer, 16)})->value, 0x1010U);
  EXPECT_EQ(run({operation(DW_OP_breg0 + kStackPointer, 16)})->value, 0x1010U);
  EXPECT_FALSE(run({operation(DW_OP_bregx, kStackPointer, 16)})->is_value);
  EXPECT_FALSE(run({operation(DW_OP_bregx, kRegisters, 0)}));
}

TEST(ExpressionTest, ARegisterAloneIsAValue) {
  const auto found = run({operation(DW_OP_regx, kStackPointer)});
  EXPECT_EQ(found->value, 0x1000U);
  EXPECT_TRUE(found->is_value);
}

TEST(ExpressionTest, AnOffsetFromTheFrame) {
  EXPECT_EQ(run({operation(DW_OP_call_frame_cfa), operation(DW_OP_plus_uconst, ~std::uint64_t{7})})
                ->value,
            0x1ff8U);
}

// The expression that linkers write for the procedure linkage table: in the second half of each
// entry, 8 more.
TEST(ExpressionTest, TheFrameOfAProcedureLinkageTable) {
  const std::vector<Operation> table{operation(DW_OP_breg0 + kStackPointer, 8),
                                     operation(DW_OP_breg0 + kReturnAddress, 0),
                                     operation(DW_OP_lit0 + 15),
                                     operation(DW_OP_and),
                                     operation(DW_OP_lit0 + 11),
                                     operation(DW_OP_ge),
                                     operation(DW_OP_lit0 + 3),
                                     operation(DW_OP_shl),
                                     operation(DW_OP_plus)};
  EXPECT_EQ(run(table)->value, 0x1010U);
}

TEST(ExpressionTest, MemoryThatIsKnownAndThatIsNot) {
  EXPECT_EQ(run({operation(DW_OP_breg0 + kStackPointer, 8), operation(DW_OP_deref)})->value, 77U);
  EXPECT_FALSE(run({operation(DW_OP_breg0 + kStackPointer, 0), operation(DW_OP_deref)}));
}

TEST(ExpressionTest, WhatIsWrongOrNotKnownHasNoResult) {
  EXPECT_FALSE(run({}));
  EXPECT_FALSE(run({operation(DW_OP_plus)}));
  EXPECT_FALSE(run({operation(DW_OP_lit0), operation(DW_OP_piece, 1)}));
  EXPECT_FALSE(run(std::vector<Operation>(1000, operation(DW_OP_lit0))));
}

}  // namespace
}  // namespace kymo::stacks
