"use strict";
// The warmup factors at one beta_2, and the share of a run that warmup takes; all numbers are computed here.
const Slider = (() => {
  const HIGHEST = 100_000; // updates, on the logarithmic axis
  const { numberText } = Scales;
  const find = (name) => document.getElementById(name);

  function updates(last, log) {
    const spaced = Array.from({ length: 260 }, (_, i) => Math.round(log ? last ** (i / 259) : 1 + ((last - 1) * i) / 259));
    return [...new Set([1, 2, 3, 4, 5, ...spaced])].sort((a, b) => a - b);
  }

  function curves(methods, beta2, t) {
    return methods.map((method) => ({
      name: method.label,
      x: t,
      y: t.map(Warmups.FACTORS[method.name](beta2)),
      colour: method.colour,
      dash: method.dash,
    }));
  }

  function spec(log, last, steps) {
    return {
      title: "The three factors at one β₂",
      x: { title: "update t", log, range: [log ? 1 : 0, last] },
      y: { title: "warmup factor ω", range: [0, 1.04] },
      shade: [log ? 1 : 0, steps + 0.5],
    };
  }

  function rows(data, beta2) {
    const each = (f) => data.methods.map((method) => f(method.name, Warmups.FACTORS[method.name](beta2)));
    const only = (wanted, value) => each((name) => (name === wanted ? value : null));
    const periods = { untuned_linear: Warmups.linearPeriod(beta2), untuned_exponential: Warmups.exponentialPeriod(beta2) };
    return [
      ["effective period, updates", ...each((name) => Warmups.effectivePeriod(name, beta2, data.quadrature))],
      ["time constant, updates: 2 / (1 − β₂) and 1 / (1 − β₂)", ...each((name) => periods[name] ?? null)],
      ["first update with ω ≥ 0.5", ...each((_, omega) => Warmups.firstReaching(0.5, omega, beta2))],
      ["first update with ω ≥ 0.95", ...each((_, omega) => Warmups.firstReaching(0.95, omega, beta2))],
      ["ω at update 5", ...each((_, omega) => omega(5))],
      ["momentum steps", ...only("radam", Warmups.momentumSteps(beta2))],
      ["ρ∞", ...only("radam", Warmups.rhoInf(beta2))],
    ];
  }

  function fill(data, table, beta2) {
    const body = document.querySelector("#factor-table tbody");
    table.forEach((row, i) => {
      const cells = body.rows[i].cells;
      cells[0].textContent = row[0];
      row.slice(1).forEach((value, j) => {
        cells[j + 1].textContent = numberText(value);
        cells[j + 1].dataset.value = value ?? "";
      });
    });
    const radam = data.methods.findIndex((method) => method.name === "radam") + 1;
    const [steps, full] = [table[5][radam], table[3][radam]];
    find("phases").textContent =
      `RAdam at β₂ = ${beta2}: updates 1 to ${steps} are momentum steps. From update ${steps + 1} on it is Adam at a rate ` +
      `that rises from ${numberText(table[4][radam])} α to 0.95 α at update ${numberText(full)}.`;
  }

  // How much of a run the untuned linear warmup takes.
  function share(beta2, total) {
    const period = Warmups.linearPeriod(beta2);
    const percent = `${numberText((100 * period) / total)} %`;
    const whole = `Untuned linear warmup takes ${numberText(Math.round(period))} updates at β₂ = ${beta2}. `;
    if (period <= total / 2) return `${whole}That is ${percent} of your ${numberText(total)} updates.`;
    const reached = period > total ? `Your run ends first, at ${numberText((100 * total) / period)} % of the learning rate. ` : "";
    return (
      `${whole}That is ${percent} of your ${numberText(total)} updates. ${reached}` +
      `Use a smaller β₂, or choose a shorter period yourself: LinearWarmup(rate, period=${Math.max(1, Math.round(total / 10))}) takes 10 %.`
    );
  }

  // `draw(box, spec, curves)` draws a chart; the table below the slider is put into `data.tables`.
  function setUp(data, draw) {
    const [slider, number, log, run] = ["beta-slider", "beta-number", "scale-log", "run-updates"].map(find);
    let beta2 = 0.999;

    function showShare() {
      const total = Number(run.value);
      const valid = Number.isInteger(total) && total >= 1;
      if (valid) run.removeAttribute("aria-invalid");
      else run.setAttribute("aria-invalid", "true");
      find("share").textContent = valid ? share(beta2, total) : "The number of updates must be a whole number of at least 1.";
    }

    function update() {
      const last = log.checked ? HIGHEST : Math.round(5 / (1 - beta2));
      draw(find("factor-chart"), spec(log.checked, last, Warmups.momentumSteps(beta2)), curves(data.methods, beta2, updates(last, log.checked)));
      const table = rows(data, beta2);
      data.tables.warmup_factors = [["beta_2 = " + beta2, ...data.methods.map((method) => method.name)], ...table];
      fill(data, table, beta2);
      slider.setAttribute("aria-valuetext", String(beta2));
      for (const preset of document.querySelectorAll("[data-beta]")) {
        preset.setAttribute("aria-pressed", String(Number(preset.dataset.beta) === beta2));
      }
      showShare();
    }

    function choose(value) {
      beta2 = value;
      number.removeAttribute("aria-invalid");
      update();
    }

    slider.addEventListener("input", () => {
      const chosen = Number((1 - 10 ** -Number(slider.value)).toFixed(6));
      number.value = String(chosen);
      choose(chosen);
    });
    number.addEventListener("input", () => {
      const asked = Number(number.value);
      if (!(asked >= 0.9 && asked <= 0.9999)) {
        number.setAttribute("aria-invalid", "true"); // the chart keeps the last valid value
        return;
      }
      slider.value = String(-Math.log10(1 - asked));
      choose(asked);
    });
    for (const preset of document.querySelectorAll("[data-beta]")) {
      preset.addEventListener("click", () => {
        number.value = preset.dataset.beta;
        number.dispatchEvent(new Event("input"));
      });
    }
    for (const radio of document.querySelectorAll("input[name=scale]")) radio.addEventListener("change", update);
    run.addEventListener("input", showShare);
    update();
  }

  return { setUp };
})();
