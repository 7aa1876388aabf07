"use strict";
// Downloads of tables and charts: numbers as CSV, pictures as PNG.
const Downloads = (() => {
  const LINE = 24; // height in pixels of a picture's title, and of every row of its legend
  const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "paint-order"];

  function field(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  function csv(rows, name) {
    const text = rows.map((row) => row.map(field).join(",") + "\r\n").join("");
    save(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
  }

  // A row for every point of every curve, of all choices.
  function chartRows(spec, choices) {
    const rows = [["choice", "curve", "part", spec.x.title, spec.y.title, "lower end"]];
    for (const [choice, curves] of Object.entries(choices)) {
      for (const curve of curves) {
        curve.x.forEach((x, i) => rows.push([choice, curve.name, curve.part ?? "", x, curve.y[i], curve.low?.[i]]));
      }
    }
    return rows;
  }

  // A copy with its styles inlined.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    const [originals, copies] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
    originals.forEach((original, i) => {
      const style = getComputedStyle(original);
      for (const name of COPIED) copies[i].style.setProperty(name, style.getPropertyValue(name));
    });
    return copy;
  }

  // The chart below its title and its legend, as one SVG.
  function withTitleAndLegend(box, legend, title) {
    const style = getComputedStyle(document.body);
    const { width, height } = box.querySelector("svg").viewBox.baseVal;
    const buttons = [...legend.querySelectorAll('button[aria-pressed="true"]')];
    const top = LINE * (1 + buttons.length);
    const whole = Charts.node("svg", { viewBox: `0 0 ${width} ${height + top}`, width, height: height + top });
    const ink = { fill: style.color, "font-family": style.fontFamily, "font-size": 14 };
    Charts.node("rect", { width, height: height + top, fill: style.backgroundColor }, whole);
    Charts.node("text", { ...ink, x: 8, y: 17, "font-weight": 600 }, whole, title);
    buttons.forEach((button, i) => {
      const sample = standalone(button.querySelector("svg"));
      for (const [name, value] of [["x", 8], ["y", LINE * (i + 1) + 3]]) sample.setAttribute(name, value);
      whole.append(sample);
      Charts.node("text", { ...ink, x: 46, y: LINE * (i + 1) + 14 }, whole, button.textContent);
    });
    const chart = standalone(box.querySelector("svg"));
    for (const [name, value] of Object.entries({ y: top, width, height })) chart.setAttribute(name, value);
    whole.append(chart);
    return { whole, width, height: height + top };
  }

  async function png(box, legend, title, name) {
    const { whole, width, height } = withTitleAndLegend(box, legend, title);
    const source = new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" });
    const image = new Image();
    image.src = URL.createObjectURL(source);
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
  }

  return { csv, chartRows, png };
})();
