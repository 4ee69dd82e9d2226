#!/usr/bin/python3
"""How much longer a process stands still in a dump with --tcp-established, for which kymod-guard traces CRIU: rounds of
three dumps of one process that has no connection: with it, without it, and again without it.

    bench/guard_cost.py --pairs 30 --mib 256 --criu "$(scripts/setup --criu)"

The order in each round is random. Prints CRIU's frozen times and the durations of the requests in nanoseconds, and two
ratios for each round: with the guard to without it, and, as a control, the two dumps without it.
"""
import inside_cost


def duration_of(_kymod, way, reply, _stem, _about):
    return {f"{way}.duration": reply["duration_ns"]}


def main():
    arguments = inside_cost.parser_of(__doc__).parse_args()
    inside_cost.measure(arguments, {"with": [], "without": [], "again": []}, duration_of,
                        {"with": ["--tcp-established"]})


if __name__ == "__main__":
    main()
