// Finds lines of a text by words, letter case aside, and by an address or prefix that one of theirs holds.
const finderOf = (() => {
  // Addresses as values that compare: a number for IPv4, 32 digits for IPv6.
  const four = (text) => {
    const parts = text.split(".").map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : 256));
    return parts.length === 4 && parts.every((part) => part < 256) ? parts.reduce((all, part) => all * 256 + part) : null;
  };
  const six = (text) => {
    const halves = text.split("::");
    if (halves.length > 2 || !text.includes(":")) return null;
    const groups = halves.map((half) => (half === "" ? [] : half.split(":")));
    for (const half of groups) {
      if (!half.at(-1)?.includes(".")) continue;
      const last = four(half.pop());
      if (last === null) return null;
      half.push(Math.floor(last / 65536).toString(16), (last % 65536).toString(16));
    }
    const [first, last = []] = groups;
    const missing = 8 - first.length - last.length;
    if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
    const all = [...first, ...Array(missing).fill("0"), ...last];
    return all.every((group) => /^[0-9a-f]{1,4}$/.test(group)) ? all.map((group) => group.padStart(4, "0")).join("") : null;
  };
  const address = (text) => (text.includes(":") ? six(text) : four(text));

  // The first and the last address of a prefix.
  const lengthOf = (mask, bits) => {
    if (/^\d+$/.test(mask)) return Number(mask) <= bits ? Number(mask) : null;
    const value = bits === 32 ? four(mask) : null;
    // Of a mask with gaps nothing is said.
    const length = value === null ? NaN : 32 - Math.log2(2 ** 32 - value);
    return Number.isInteger(length) ? length : null;
  };
  const prefix = (base, mask) => {
    const bits = typeof base === "number" ? 32 : 128;
    const length = lengthOf(mask, bits);
    if (length === null) return null;
    if (bits === 32) {
      const size = 2 ** (32 - length);
      const from = Math.floor(base / size) * size;
      return [from, from + size - 1];
    }
    const rest = (1n << BigInt(128 - length)) - 1n;
    const value = BigInt(`0x${base}`);
    const digits = (number) => number.toString(16).padStart(32, "0");
    return [digits(value & ~rest), digits(value | rest)];
  };
  // `10.0.0.1`, `10.0.0.0/8`, `10.0.0.1-10.0.0.9`, `10.0.0.1:80`: the addresses that it stands for.
  const range = (word) => {
    const [ends, mask] = word.split("/", 2);
    let [from, to] = ends.split("-", 2);
    if (from.includes(".") && /^[^:]*:\d*$/.test(from)) from = from.split(":", 1)[0];
    const [first, last] = [address(from), to && address(to)];
    if (first === null) return null;
    if (mask !== undefined) return prefix(first, mask);
    return typeof last === typeof first ? [first, last] : [first, first];
  };

  // Lines by words and by prefixes. A text is searched in small letters; its lines begin at `starts`.
  const WORD = /[0-9a-f.:]{2,100}(?:\/[0-9a-f.:]{1,45})?(?:-[0-9a-f.:]{2,45})?/g;
  const finder = (lines) => {
    const text = lines.join("\n").toLowerCase() + "\n";
    const starts = new Uint32Array(lines.length + 1);
    for (let line = 1; line <= lines.length; line += 1) starts[line] = text.indexOf("\n", starts[line - 1]) + 1;
    let prefixes;
    const index = () => {
      if (prefixes) return prefixes;
      prefixes = { line: [], from: [], to: [] };
      // Quoted words and comments are no addresses. Bounded, so that no text makes this slow.
      const said = text.replace(/"(?:[^"\\\n]|\\.){0,1024}"|^#.*/gm, (words) => " ".repeat(words.length));
      let line = 0;
      for (const { 0: word, index: at } of said.matchAll(WORD)) {
        if (!/[.:]/.test(word) || (at > 0 && /[\w.:]/.test(said[at - 1]))) continue;
        const found = range(word);
        if (!found) continue;
        while (starts[line + 1] <= at) line += 1;
        prefixes.line.push(line);
        prefixes.from.push(found[0]);
        prefixes.to.push(found[1]);
      }
      return prefixes;
    };
    // One mark for each line: 1 has the words, 2 a prefix that holds the address.
    const find = (words) => {
      const marks = new Uint8Array(lines.length);
      const asked = /[.:]/.test(words) ? range(words) : null;
      // An address is no part of a longer one.
      const isWhole = (at) => !asked || !/[\w.]/.test(text[at + words.length]) && !(at > 0 && /[\w.:]/.test(text[at - 1]));
      let line = 0;
      let from = 0;
      for (let at = text.indexOf(words); at >= 0 && at < starts[lines.length]; at = text.indexOf(words, from)) {
        while (starts[line + 1] <= at) line += 1;
        const whole = isWhole(at);
        if (whole) marks[line] |= 1;
        from = whole ? starts[line + 1] : at + 1;
      }
      if (asked) {
        const { line: of, from, to } = index();
        const [first, last] = asked;
        for (let at = 0; at < of.length; at += 1) {
          if (typeof from[at] === typeof first && from[at] <= first && last <= to[at]) marks[of[at]] |= 2;
        }
      }
      return { marks, isAddress: Boolean(asked) };
    };
    return { find, index };
  };
  return finder;
})();
