"use strict";
// Draws a chart as SVG: curves, bands, axes, a legend of buttons, and the values at a cursor for pointer and keyboard.
const Charts = (() => {
  const { numberText, scale } = Scales;
  const LETTER = 7.2; // approximate width of a digit in pixels; half a label fits to the right of the frame

  function node(name, attributes, parent, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent?.append(made);
    return made;
  }

  function element(name, attributes, parent, text) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent?.append(made);
    return made;
  }

  const isBold = (curve) => !curve.thin;
  const colourOf = (curve) => `var(--${curve.colour}${curve.thin ? "-faint" : ""})`;

  // The path data of a curve, interrupted at its gaps.
  function path(xs, ys, x, y) {
    let text = "";
    let pen = "M";
    xs.forEach((value, i) => {
      const [across, down] = [x.at(value), ys[i] === null ? null : y.at(ys[i])];
      if (across === null || down === null) {
        pen = "M";
        return;
      }
      text += `${pen}${across.toFixed(1)},${down.toFixed(1)}`;
      pen = "L";
    });
    return text;
  }

  function drawCurve(parent, curve, x, y) {
    const colour = colourOf(curve);
    const line = { fill: "none", style: `stroke: ${colour}`, class: "curve" };
    if (curve.low) {
      const back = path([...curve.x].reverse(), [...curve.low].reverse(), x, y).replace("M", "L");
      node("path", { d: `${path(curve.x, curve.y, x, y)}${back}Z`, style: `fill: ${colour}`, opacity: curve.opacity, class: "band" }, parent);
      for (const edge of [curve.low, curve.y]) node("path", { ...line, d: path(curve.x, edge, x, y), "stroke-width": 0.75 }, parent);
      return;
    }
    const look = { "stroke-width": curve.thin ? 1 : 2.5, "stroke-dasharray": curve.dash ?? "", "stroke-linejoin": "round" };
    node("path", { ...line, ...look, d: path(curve.x, curve.y, x, y) }, parent);
    if (curve.marks) {
      curve.x.forEach((value, i) => {
        const down = curve.y[i] === null ? null : y.at(curve.y[i]);
        if (down !== null) node("circle", { cx: x.at(value), cy: down, r: 3.5, style: `fill: ${colour}` }, parent);
      });
    }
  }

  function drawAxes(svg, spec, x, y, frame) {
    for (const [value, text] of y.ticks) {
      const down = y.at(value);
      node("line", { x1: frame.left, x2: frame.right, y1: down, y2: down, class: "grid" }, svg);
      node("text", { x: frame.left - 7, y: down + 4, "text-anchor": "end" }, svg, text);
    }
    for (const [value, text] of x.ticks) {
      const across = x.at(value);
      node("line", { x1: across, x2: across, y1: frame.top, y2: frame.bottom, class: "grid" }, svg);
      node("text", { x: across, y: frame.bottom + 18, "text-anchor": "middle" }, svg, text);
    }
    const middle = (frame.top + frame.bottom) / 2;
    node("text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 40, "text-anchor": "middle" }, svg, spec.x.title);
    node("text", { transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" }, svg, spec.y.title);
  }

  function drawReferences(svg, plot, spec, y, frame) {
    for (const { y: value, label } of spec.lines ?? []) {
      const down = y.at(value);
      node("line", { x1: 0, x2: frame.right - frame.left, y1: down - frame.top, y2: down - frame.top, class: "reference" }, plot);
      node("text", { x: frame.right - 4, y: down - 5, "text-anchor": "end", class: "halo" }, svg, label);
    }
  }

  // The description for screen readers: where every curve begins and ends.
  function description(spec, curves) {
    const ends = curves.filter(isBold).map((curve) => {
      const known = curve.x.map((value, i) => [value, curve.y[i]]).filter(([, value]) => value !== null);
      if (!known.length) return `${curve.name}: no values`;
      const [[x0, y0], [x1, y1]] = [known[0], known[known.length - 1]];
      return `${curve.name}: ${numberText(y0)} at ${numberText(x0)}, ${numberText(y1)} at ${numberText(x1)}`;
    });
    return `${spec.title}. ${spec.y.title} over ${spec.x.title}. ${ends.join("; ")}.`;
  }

  // Draws the curves that are not hidden; the axes fit all curves.
  function draw(box, spec, curves, hidden) {
    const [width, height] = [Math.max(box.clientWidth, 260), box.clientWidth < 480 ? 300 : 330];
    const all = (key) => curves.flatMap((curve) => [...curve[key], ...(key === "y" ? (curve.low ?? []) : [])]);
    const ys = [...all("y"), ...(spec.lines ?? []).map((line) => line.y)];
    const frame = { left: 0, right: width - 30, top: 8, bottom: height - 50 };
    const y = scale(spec.y, ys, frame.bottom, frame.top, 6);
    frame.left = 32 + LETTER * Math.max(...y.ticks.map(([, text]) => text.length), 1);
    const x = scale({ tight: true, ...spec.x }, all("x"), frame.left, frame.right, Math.max(3, Math.floor(width / 110)));
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": description(spec, curves) });
    drawAxes(svg, spec, x, y, frame);
    const size = { width: frame.right - frame.left, height: frame.bottom - frame.top };
    const plot = node("svg", { x: frame.left, y: frame.top, ...size }, svg); // clips the curves at the frame
    if (spec.shade) node("rect", { x: x.at(spec.shade[0]) - frame.left, y: 0, width: x.at(spec.shade[1]) - x.at(spec.shade[0]), height: size.height, class: "shade" }, plot);
    const inside = { at: (value) => shifted(x.at(value), frame.left) };
    const down = { at: (value) => shifted(y.at(value), frame.top) };
    const shown = curves.filter((curve) => !hidden.has(curve.name));
    for (const curve of shown) drawCurve(plot, curve, inside, down);
    drawReferences(svg, plot, spec, y, frame);
    box.replaceChildren(svg);
    box.drawn = { spec, curves, shown };
    addCursor(box, svg, plot, spec, shown.filter((curve) => isBold(curve)), { inside, down, frame, size });
  }

  const shifted = (value, by) => (value === null ? null : value - by);

  // Shows the values of all curves at one x, which the pointer or the arrow keys choose.
  function addCursor(box, svg, plot, spec, curves, { inside, down, frame, size }) {
    const places = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => inside.at(a) - inside.at(b));
    const tip = element("div", { class: "tip", role: "status", hidden: "" }, box);
    const group = node("g", {}, plot);
    let index = -1;

    function show(at) {
      if (!places.length) return;
      index = Math.min(Math.max(at, 0), places.length - 1);
      const value = places[index];
      const across = inside.at(value);
      group.replaceChildren();
      node("line", { x1: across, x2: across, y1: 0, y2: size.height, class: "cursor" }, group);
      tip.replaceChildren();
      element("strong", {}, tip, `${spec.x.title} ${numberText(value)}`);
      for (const curve of curves) {
        const i = curve.x.indexOf(value);
        if (i < 0 || curve.y[i] === null) continue;
        const text = curve.low ? `${numberText(curve.low[i])} to ${numberText(curve.y[i])}` : numberText(curve.y[i]);
        element("div", {}, tip, `${curve.name}: ${text}`);
        if (!curve.low) node("circle", { cx: across, cy: down.at(curve.y[i]) ?? -9, r: 4, style: `fill: ${colourOf(curve)}` }, group);
      }
      tip.hidden = false;
      const room = box.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(room, frame.left + across + (across > size.width / 2 ? -tip.offsetWidth - 12 : 12)))}px`;
    }

    function hide() {
      tip.hidden = true;
      group.replaceChildren();
    }

    svg.addEventListener("pointermove", (event) => {
      const bounds = svg.getBoundingClientRect();
      const wanted = ((event.clientX - bounds.left) * svg.viewBox.baseVal.width) / bounds.width - frame.left;
      const distance = (value) => Math.abs(inside.at(value) - wanted);
      show(places.reduce((best, value, i) => (distance(value) < distance(places[best]) ? i : best), 0));
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: index + 1, ArrowLeft: index - 1, PageDown: index + 10, PageUp: index - 10, Home: 0, End: places.length - 1 };
      if (event.key === "Escape") hide();
      else if (event.key in moves) {
        show(moves[event.key]);
        event.preventDefault();
      }
    });
  }

  // One button per curve name; pressed means shown.
  function drawLegend(legend, curves, hidden, toggle) {
    const named = new Map(curves.filter(isBold).map((curve) => [curve.name, curve]));
    legend.hidden = named.size < 2;
    legend.replaceChildren();
    for (const [name, curve] of named) {
      const button = element("button", { type: "button", "aria-pressed": String(!hidden.has(name)) }, legend);
      const sample = node("svg", { width: 30, height: 12, "aria-hidden": "true" }, button);
      if (curve.low) node("rect", { width: 30, height: 12, style: `fill: ${colourOf(curve)}`, opacity: curve.opacity }, sample);
      else node("path", { d: "M0,6L30,6", class: "curve", style: `stroke: ${colourOf(curve)}`, "stroke-width": 2.5, "stroke-dasharray": curve.dash ?? "" }, sample);
      element("span", {}, button, name);
      button.addEventListener("click", () => toggle(name));
    }
  }

  return { draw, drawLegend, element, node };
})();
