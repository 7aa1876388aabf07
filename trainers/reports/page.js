"use strict";
// Sets up the page: charts with their legends, choices and numbers, the slider, the buttons.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const MOST_ROWS = 12; // in the table of numbers below a chart

  // The hidden methods of each group of charts with linked legends.
  const hidden = new Map();
  const hiddenIn = (group) => hidden.get(group) ?? hidden.set(group, new Set()).get(group);
  const partOf = (box, selector) => box.closest("figure").querySelector(selector);

  function show(box, spec, curves) {
    const off = hiddenIn(box.dataset.group);
    Charts.draw(box, spec, curves, off);
    Charts.drawLegend(partOf(box, ".legend"), curves, off, (name) => toggle(box.dataset.group, name));
    fillNumbers(partOf(box, ".numbers"), spec, curves);
  }

  function redraw(box) {
    if (box.drawn) show(box, box.drawn.spec, box.drawn.curves);
  }

  function toggle(group, name) {
    const focused = document.activeElement?.closest("figure");
    const off = hiddenIn(group);
    if (!off.delete(name)) off.add(name);
    boxes.filter((box) => box.dataset.group === group).forEach(redraw);
    const same = [...(focused?.querySelectorAll(".legend button") ?? [])].find((button) => button.textContent === name);
    same?.focus(); // the buttons have been replaced
  }

  // A table with a few values of each curve, for readers who cannot see the chart.
  function fillNumbers(details, spec, curves) {
    const bold = curves.filter((curve) => !curve.thin);
    const places = [...new Set(bold.flatMap((curve) => curve.x))].sort((a, b) => a - b);
    const last = places.length - 1;
    const at = (i) => (spec.x.log && !spec.x.ticks ? Math.round((last + 1) ** (i / (MOST_ROWS - 1))) - 1 : Math.round((last * i) / (MOST_ROWS - 1)));
    const rows = last < MOST_ROWS ? places : [...new Set(Array.from({ length: MOST_ROWS }, (_, i) => places[at(i)]))];
    const table = Charts.element("table", { role: "table", class: bold.length > 2 ? "wide" : "" });
    Charts.element("caption", { class: "unseen" }, table, `${spec.title}: selected values`);
    const head = Charts.element("tr", {}, Charts.element("thead", {}, table));
    for (const name of [spec.x.title, ...bold.map((curve) => curve.name)]) Charts.element("th", { scope: "col" }, head, name);
    const body = Charts.element("tbody", {}, table);
    for (const x of rows) {
      const row = Charts.element("tr", { role: "row" }, body);
      Charts.element("th", { scope: "row", role: "rowheader", class: "number", "data-label": spec.x.title }, row, Scales.numberText(x));
      for (const curve of bold) {
        const i = curve.x.indexOf(x);
        const value = i < 0 ? null : curve.y[i];
        const text = curve.low && i >= 0 ? `${Scales.numberText(curve.low[i])} to ${Scales.numberText(value)}` : Scales.numberText(value);
        Charts.element("td", { role: "cell", class: "number", "data-label": curve.name }, row, text);
      }
    }
    details.querySelector(".scroll").replaceChildren(table);
  }

  function drawAll() {
    for (const box of boxes) {
      const chart = data.charts[box.dataset.chart];
      const select = document.getElementById(`choice-${box.dataset.group}`);
      if (chart) show(box, chart, select ? (chart.choices[select.value] ?? []) : Object.values(chart.choices)[0]);
    }
    for (const select of document.querySelectorAll("select[data-group]")) {
      select.addEventListener("change", () => {
        for (const box of boxes.filter((each) => each.dataset.group === select.dataset.group)) {
          const chart = data.charts[box.dataset.chart];
          show(box, chart, chart.choices[select.value] ?? []);
        }
      });
    }
  }

  function setUpButtons() {
    for (const button of document.querySelectorAll("button[data-csv]")) {
      button.addEventListener("click", () => Downloads.csv(data.tables[button.dataset.csv], button.dataset.csv));
    }
    for (const box of boxes) {
      const name = box.dataset.chart;
      partOf(box, ".chart-csv").addEventListener("click", () => {
        const { spec, curves } = box.drawn;
        Downloads.csv(Downloads.chartRows(spec, data.charts[name]?.choices ?? { "": curves }), name);
      });
      partOf(box, ".chart-png").addEventListener("click", () => {
        Downloads.png(box, partOf(box, ".legend"), box.drawn.spec.title, name);
      });
    }
  }

  // Redraws a chart when its width changes. In print, page.css scales it instead.
  function followWidth() {
    const observer = new ResizeObserver((entries) => {
      if (window.matchMedia("print").matches) return;
      for (const { target } of entries) {
        if (target.drawn && target.clientWidth !== target.drawnWidth) redraw(target);
        target.drawnWidth = target.clientWidth;
      }
    });
    for (const box of boxes) observer.observe(box);
  }

  // Opens collapsed tables for printing.
  function unfoldForPrint() {
    const folded = () => document.querySelectorAll("details.table");
    window.addEventListener("beforeprint", () => folded().forEach((each) => {
      each.dataset.closed = each.open ? "" : "yes";
      each.open = true;
    }));
    window.addEventListener("afterprint", () => folded().forEach((each) => {
      if (each.dataset.closed) each.open = false;
    }));
  }

  Slider.setUp(data, show);
  drawAll();
  setUpButtons();
  followWidth();
  unfoldForPrint();
  document.documentElement.dataset.ready = "yes";
})();
