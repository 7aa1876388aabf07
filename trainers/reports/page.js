"use strict";
// Draws the charts, moves the factors with beta_2, and hands out tables as CSV.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const CONFIG = {
    displaylogo: false,
    displayModeBar: false, // its buttons would lie on the curves; a double click undoes a zoom
    responsive: true,
  };
  const AXIS = { automargin: true, exponentformat: "e", showgrid: true, ticks: "outside", ticklen: 4, zeroline: false };

  function fullLayout(own) {
    return {
      autosize: true,
      margin: { l: 60, r: 26, t: 6, b: 48 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: FONT, size: 13 },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemdoubleclick: false },
      hovermode: "x unified",
      hoverlabel: { namelength: -1 },
      dragmode: touch ? false : "zoom", // a finger on a chart scrolls the page
      ...own,
      xaxis: { ...AXIS, ...own.xaxis },
      yaxis: { ...AXIS, ...own.yaxis, title: { standoff: 10, ...own.yaxis?.title } },
    };
  }

  // Which methods are switched off, for each group of charts whose legends work together.
  const hidden = new Map();
  const hiddenIn = (group) => hidden.get(group) ?? hidden.set(group, new Set()).get(group);
  const chartsOf = (group) => [...document.querySelectorAll("[data-chart]")].filter((el) => el.dataset.group === group);
  const visibility = (trace, group) => (hiddenIn(group).has(trace.legendgroup) ? "legendonly" : true);

  function show(el, traces, layout) {
    const shown = traces.map((trace) => ({ ...trace, visible: visibility(trace, el.dataset.group) }));
    return Plotly.react(el, shown, fullLayout(layout), CONFIG);
  }

  function toggle(group, method) {
    const off = hiddenIn(group);
    if (!off.delete(method)) off.add(method);
    for (const el of chartsOf(group)) {
      Plotly.restyle(el, { visible: el.data.map((trace) => visibility(trace, group)) });
    }
  }

  function draw(el, traces, layout) {
    show(el, traces, layout);
    el.on("plotly_legendclick", (event) => {
      toggle(el.dataset.group, event.data[event.curveNumber].legendgroup);
      return false;
    });
  }

  function drawAll() {
    for (const el of document.querySelectorAll("[data-chart]")) {
      const chart = data.charts[el.dataset.chart];
      const select = document.getElementById(`choice-${el.dataset.group}`);
      if (chart) draw(el, select ? (chart.choices[select.value] ?? []) : Object.values(chart.choices)[0], chart.layout);
    }
    for (const select of document.querySelectorAll("select[data-group]")) {
      select.addEventListener("change", () => {
        for (const el of chartsOf(select.dataset.group)) {
          const chart = data.charts[el.dataset.chart];
          show(el, chart.choices[select.value] ?? [], chart.layout);
        }
      });
    }
  }

  // ---- The factors at one beta_2 ----

  const HIGHEST = 100_000; // updates, on the logarithmic axis

  function updates(last, log) {
    const spaced = Array.from({ length: 260 }, (_, i) => Math.round(log ? last ** (i / 259) : 1 + ((last - 1) * i) / 259));
    return [...new Set([1, 2, 3, 4, 5, ...spaced])].sort((a, b) => a - b);
  }

  function factorTraces(beta2, t) {
    return data.methods.map((method) => ({
      type: "scatter",
      mode: "lines",
      x: t,
      y: t.map(Warmups.FACTORS[method.name](beta2)),
      name: method.label,
      legendgroup: method.label,
      line: { color: method.colour, dash: method.dash, width: 2.5 },
    }));
  }

  function factorLayout(log, last, steps) {
    const edge = steps + 0.5;
    return {
      xaxis: {
        title: { text: "update t" },
        tickformat: ",d",
        hoverformat: ",d",
        ...(log ? { type: "log", dtick: 1, range: [0, Math.log10(last)] } : { type: "linear", range: [0, last] }),
      },
      yaxis: { title: { text: "warmup factor ω" }, range: [0, 1.04], hoverformat: ".6~g" },
      shapes: [{ type: "rect", yref: "paper", x0: log ? 1 : 0, x1: edge, y0: 0, y1: 1, fillcolor: "#888888", opacity: 0.15, line: { width: 0 } }],
    };
  }

  function factorRows(beta2) {
    const each = (f) => data.methods.map((method) => f(method.name, Warmups.FACTORS[method.name](beta2)));
    const only = (wanted, value) => each((name) => (name === wanted ? value : null));
    const periods = { untuned_linear: Warmups.linearPeriod(beta2), untuned_exponential: Warmups.exponentialPeriod(beta2) };
    return [
      ["effective period, updates", ...each((name) => Warmups.effectivePeriod(name, beta2, data.quadrature))],
      ["constant: 2 / (1 − β₂) and 1 / (1 − β₂)", ...each((name) => periods[name] ?? null)],
      ["first update with ω ≥ 0.5", ...each((_, omega) => Warmups.firstReaching(0.5, omega, beta2))],
      ["first update with ω ≥ 0.95", ...each((_, omega) => Warmups.firstReaching(0.95, omega, beta2))],
      ["ω of update 5", ...each((_, omega) => omega(5))],
      ["momentum steps", ...only("radam", Warmups.momentumSteps(beta2))],
      ["ρ∞", ...only("radam", Warmups.rhoInf(beta2))],
    ];
  }

  function numberText(value) {
    if (value === null) return "–";
    const digits = Number.isInteger(value) ? {} : { maximumSignificantDigits: 6 };
    return value.toLocaleString("en-GB", digits);
  }

  function fillFactors(rows, beta2) {
    const body = document.querySelector("#factor-table tbody");
    rows.forEach((row, i) => {
      const cells = body.rows[i].cells;
      cells[0].textContent = row[0];
      row.slice(1).forEach((value, j) => {
        cells[j + 1].textContent = numberText(value);
        cells[j + 1].dataset.value = value ?? "";
      });
    });
    const radam = data.methods.findIndex((method) => method.name === "radam") + 1;
    const [steps, full] = [rows[5][radam], rows[3][radam]];
    document.getElementById("phases").textContent =
      `RAdam at β₂ = ${beta2}: momentum for updates 1 to ${steps}; Adam at a rate that rises from ` +
      `${numberText(rows[4][radam])} α at update ${steps + 1} to 0.95 α at update ${numberText(full)}; nearly plain Adam from there on.`;
  }

  function setUpFactors() {
    const el = document.getElementById("factor-chart");
    const [slider, number] = [document.getElementById("beta-slider"), document.getElementById("beta-number")];
    const log = document.getElementById("scale-log");
    let beta2 = 0.999;

    function update() {
      const last = log.checked ? HIGHEST : Math.round(5 / (1 - beta2));
      const steps = Warmups.momentumSteps(beta2);
      show(el, factorTraces(beta2, updates(last, log.checked)), factorLayout(log.checked, last, steps));
      const rows = factorRows(beta2);
      data.tables.warmup_factors = [["beta_2 = " + beta2, ...data.methods.map((method) => method.name)], ...rows];
      fillFactors(rows, beta2);
      slider.setAttribute("aria-valuetext", String(beta2));
    }

    slider.addEventListener("input", () => {
      beta2 = Number((1 - 10 ** -Number(slider.value)).toFixed(6));
      number.value = String(beta2);
      number.removeAttribute("aria-invalid");
      update();
    });
    number.addEventListener("input", () => {
      const asked = Number(number.value);
      if (!(asked >= 0.9 && asked <= 0.9999)) {
        number.setAttribute("aria-invalid", "true"); // the chart stays at the last value that can be
        return;
      }
      number.removeAttribute("aria-invalid");
      beta2 = asked;
      slider.value = String(-Math.log10(1 - beta2));
      update();
    });
    for (const radio of document.querySelectorAll("input[name=scale]")) radio.addEventListener("change", update);
    draw(el, [], {});
    update();
  }

  // ---- CSV ----

  function field(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function download(name) {
    const text = data.tables[name].map((row) => row.map(field).join(",") + "\r\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    link.download = `${name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // ---- Print: charts as wide as the paper ----

  function resizeAll(printing) {
    document.documentElement.classList.toggle("printing", printing);
    for (const el of document.querySelectorAll("[data-chart]")) {
      Plotly.relayout(el, printing ? { width: el.clientWidth, autosize: false } : { width: undefined, autosize: true });
    }
  }

  for (const button of document.querySelectorAll("button[data-csv]")) {
    button.addEventListener("click", () => download(button.dataset.csv));
  }
  window.addEventListener("beforeprint", () => resizeAll(true));
  window.addEventListener("afterprint", () => resizeAll(false));
  setUpFactors();
  drawAll();
})();
