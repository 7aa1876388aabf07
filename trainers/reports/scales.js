"use strict";
// Axes and numbers: where a value is drawn, which values get a tick, and how a number is written.
const Scales = (() => {
  // The same rule as `rounded` in words.py: four digits, and no decimals from 1,000 on.
  function numberText(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (Number.isInteger(value) || size >= 999.95) return value.toLocaleString("en-GB", { maximumFractionDigits: 0 });
    if (size < 1e-4) return value.toExponential(3).replace(/\.?0*e/, "e");
    return String(Number(value.toPrecision(4)));
  }

  function linearTicks(low, high, most) {
    const raw = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= raw * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }

  // Powers of ten, with 2 and 5 in between if they are few.
  function logTicks(low, high, most) {
    const [from, to] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
    const every = Math.ceil((to - from) / most) || 1;
    const digits = Math.log10(high / low) < 2.2 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = from; power <= to; power += every) {
      for (const digit of digits) ticks.push(Number((digit * 10 ** power).toPrecision(12)));
    }
    return ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  }

  // The smallest and the largest value that an axis shows.
  function extent(axis, values) {
    if (axis.range) return axis.range;
    const shown = values.filter((value) => value !== null && (!axis.log || value > 0));
    let [low, high] = shown.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
    if (low > high) [low, high] = [1, 2];
    if (axis.zero) low = Math.min(0, low);
    if (axis.log) return low === high ? [low / 2, high * 2] : [low, high];
    const room = high === low ? Math.abs(high) || 1 : (high - low) * 0.05;
    return [axis.zero || axis.tight ? low : low - room, axis.tight ? high : high + room];
  }

  // A scale from values to pixels; an axis may be reversed.
  function scale(axis, values, from, to, most) {
    const [low, high] = extent(axis, values);
    const place = axis.log ? Math.log : (value) => value;
    const factor = (to - from) / (place(high) - place(low));
    const at = (value) => (axis.log && value <= 0 ? null : from + (place(value) - place(low)) * factor);
    const ends = [Math.min(low, high), Math.max(low, high)];
    const automatic = axis.log ? logTicks(...ends, most) : linearTicks(...ends, most);
    const ticks = axis.ticks ?? automatic.map((tick) => [tick, numberText(tick)]);
    return { at, ticks: ticks.filter(([tick]) => tick >= ends[0] * (1 - 1e-9) && tick <= ends[1] * (1 + 1e-9)) };
  }

  return { numberText, scale };
})();
