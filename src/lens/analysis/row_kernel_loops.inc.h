// The three loops of a RowKernel, in one source for all instruction sets. row_kernel_avx2.cc and
// row_kernel_avx512.cc include this file, each in a namespace of its own. So it has no include
// guard, no #include and no namespace. Before it, they define:
//
//   KYMO_TARGET  the attribute of the functions that use the instruction set
//   Isa          the operations of the instruction set, on these types:
//     Isa::Text64   64 bytes of text
//     Isa::Vector   kAtOnce numbers of 64 bits, as parts of 16 bytes: two numbers each
//     Isa::Lengths  kAtOnce numbers of 32 bits

KYMO_TARGET inline Separators find_separators(std::string_view text, std::uint32_t* places) {
  std::size_t lines = 0;
  std::uint64_t strange = 0;
  std::uint32_t* next = places;
  for (std::size_t at = 0; at < text.size(); at += 64) {
    const char* const here = text.data() + at;
    const std::size_t left = text.size() - at;
    const Isa::Text64 block = left >= 64 ? Isa::load_text(here) : Isa::load_text_part(here, left);
    const std::uint64_t separators = Isa::not_digits(block);
    const std::uint64_t line_ends = Isa::equal_to(block, '\n');
    strange |= separators & ~(line_ends | Isa::equal_to(block, '\t'));
    lines += static_cast<std::size_t>(__builtin_popcountll(line_ends));
    const int count = __builtin_popcountll(separators);
    Isa::write_places(separators, count, static_cast<std::uint32_t>(at), next);
    next += count;
  }
  return {static_cast<std::size_t>(next - places), lines, strange != 0};
}

// Converts digits to numbers of four digits.
KYMO_TARGET inline Isa::Vector fours_of(Isa::Vector digits) {
  const Isa::Vector pairs = Isa::weigh_bytes(digits, 0x010a);  // 10 a + b
  return Isa::weigh_words(pairs, 0x00010064);                  // 100 a + b
}

// Converts kAtOnce numbers. `lengths` are those of their digits, minus one. Part p of `even` has
// the digits of number 2 p, part p of `odd` those of number 2 p + 1.
KYMO_TARGET inline void convert(const char* text, const std::uint32_t* ends, Isa::Lengths lengths,
                                std::uint64_t* numbers) {
  const Isa::Skipped skipped = Isa::skipped(lengths);
  const Isa::Vector even_text =
      Isa::load_parts([=](std::size_t part) { return text + ends[2 * part] - 16; });
  const Isa::Vector odd_text =
      Isa::load_parts([=](std::size_t part) { return text + ends[2 * part + 1] - 16; });
  const Isa::Vector even = fours_of(Isa::digits_after(even_text, skipped.even));
  const Isa::Vector odd = fours_of(Isa::digits_after(odd_text, skipped.odd));
  const Isa::Vector eights = Isa::weigh_words(Isa::pack(even, odd), 0x00012710);  // 10000 a + b
  Isa::store(numbers, Isa::weigh_halves(eights, 100'000'000));
}

KYMO_TARGET inline bool to_numbers(const char* text, const std::uint32_t* ends, std::size_t count,
                                   std::uint64_t* numbers) {
  Isa::Lengths all = {};
  std::size_t i = 0;
  for (; i + Isa::kAtOnce <= count; i += Isa::kAtOnce) {
    const Isa::Lengths here = Isa::lengths_of(ends + i);
    all = Isa::either(all, here);
    convert(text, ends + i, here, numbers + i);
  }
  if (i < count) {
    const Isa::Lengths here = Isa::lengths_of(ends + i);
    all = Isa::either(all, Isa::first_of(here, count - i));
    convert(text, ends + i, here, numbers + i);
  }
  return Isa::all_below(all, RowKernel::kMaxDigits);
}

KYMO_TARGET inline void to_columns(const std::uint64_t* numbers, std::size_t rows,
                                   std::size_t columns, std::uint64_t* out, std::size_t stride) {
  std::size_t row = 0;
  for (; row + Isa::kAtOnce <= rows; row += Isa::kAtOnce) {
    const std::uint64_t* const from = numbers + row * columns;
    std::size_t c = 0;
    for (; c + 2 <= columns; c += 2) {
      // Two numbers of each even row, and of each odd row.
      const std::uint64_t* const here = from + c;
      const Isa::Vector even =
          Isa::load_parts([=](std::size_t part) { return here + 2 * part * columns; });
      const Isa::Vector odd =
          Isa::load_parts([=](std::size_t part) { return here + (2 * part + 1) * columns; });
      Isa::store(out + c * stride + row, Isa::first_of_pairs(even, odd));
      Isa::store(out + (c + 1) * stride + row, Isa::second_of_pairs(even, odd));
    }
    for (std::size_t r = 0; r < Isa::kAtOnce && c < columns; ++r) {
      out[c * stride + row + r] = from[r * columns + c];
    }
  }
  for (; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) out[c * stride + row] = numbers[row * columns + c];
  }
}
