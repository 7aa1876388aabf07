"use strict";
// The warmup factors at one beta_2, and the share of a run that warmup takes; all numbers are computed here.
(() => {
  const find = (name) => document.getElementById(name);
  const methods = [...document.querySelectorAll("#factor-table [data-method]")].map((cell) => cell.dataset.method);
  const figure = document.querySelector("#factor-chart svg");
  figure.querySelector(".values").remove(); // they are those of the first beta_2
  const curves = [...figure.querySelectorAll("g > title")].map((title) => ({ title, name: title.textContent }));
  const FIRST_UPDATES = [1, 2, 3, 4, 5];
  const [LAST, HIGHEST] = [100_000, 1.05]; // the ends of the axes, as in figures/paper.py

  // The same rule as `rounded` in results/formats.py: four digits, and no decimals from 1,000 on.
  function numberText(value) {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (Number.isInteger(value) || size >= 999.95) return value.toLocaleString("en-GB", { maximumFractionDigits: 0 });
    if (size < 1e-4) return value.toExponential(3).replace(/\.?0*e/, "e");
    return String(Number(value.toPrecision(4)));
  }

  const spaced = Array.from({ length: 260 }, (_, i) => Math.round(LAST ** (i / 259)));
  const updates = [...new Set([...FIRST_UPDATES, ...spaced])].sort((a, b) => a - b);

  // Replaces the curves in the figure that matplotlib has drawn, between the ends of its axes.
  function draw(beta2, table) {
    const [left, right, bottom, top] = figure.dataset.frame.split(" ").map(Number);
    curves.forEach(({ title, name }, i) => {
      const omega = Warmups.FACTORS[methods[i]](beta2);
      const points = updates.map((t) => {
        const across = left + ((right - left) * Math.log(t)) / Math.log(LAST);
        return `${across.toFixed(1)} ${(bottom + ((top - bottom) * omega(t)) / HIGHEST).toFixed(1)}`;
      });
      title.parentNode.querySelector("path").setAttribute("d", `M${points.join("L")}`);
      const [half, nearly] = [table[2], table[3]].map((row) => numberText(row[i + 1]));
      title.textContent = `${name}: 0.5 at update ${half}, 0.95 at update ${nearly}`;
    });
  }

  function rows(beta2) {
    const each = (f) => methods.map((method) => f(method, Warmups.FACTORS[method](beta2)));
    const only = (wanted, value) => each((name) => (name === wanted ? value : null));
    const periods = { untuned_linear: Warmups.linearPeriod(beta2), untuned_exponential: Warmups.exponentialPeriod(beta2) };
    return [
      ["effective period, updates", ...each((name) => Warmups.effectivePeriod(name, beta2))],
      ["time constant, updates: 2 / (1 − β₂) and 1 / (1 − β₂)", ...each((name) => periods[name] ?? null)],
      ["first update with ω ≥ 0.5", ...each((_, omega) => Warmups.firstReaching(0.5, omega, beta2))],
      ["first update with ω ≥ 0.95", ...each((_, omega) => Warmups.firstReaching(0.95, omega, beta2))],
      ["ω at update 5", ...each((_, omega) => omega(5))],
      ["momentum steps", ...only("radam", Warmups.momentumSteps(beta2))],
      ["ρ∞", ...only("radam", Warmups.rhoInf(beta2))],
    ];
  }

  function fill(table, beta2) {
    const body = document.querySelector("#factor-table tbody");
    table.forEach((row, i) => {
      const cells = body.rows[i].cells;
      cells[0].textContent = row[0];
      row.slice(1).forEach((value, j) => {
        cells[j + 1].textContent = numberText(value);
        cells[j + 1].dataset.value = value ?? "";
      });
    });
    const csv = [[`beta_2 = ${beta2}`, ...methods], ...table].map((row) => `"${row.join('","')}"\r\n`).join("");
    find("factor-csv").href = `data:text/csv;charset=utf-8,%EF%BB%BF${encodeURIComponent(csv)}`;
    const radam = methods.indexOf("radam") + 1;
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

  const [slider, number, run] = ["beta-slider", "beta-number", "run-updates"].map(find);
  let beta2 = Number(number.value);

  function showShare() {
    const total = Number(run.value);
    const valid = Number.isInteger(total) && total >= 1;
    if (valid) run.removeAttribute("aria-invalid");
    else run.setAttribute("aria-invalid", "true");
    find("share").textContent = valid ? share(beta2, total) : "The number of updates must be a whole number of at least 1.";
  }

  function choose(value) {
    beta2 = value;
    number.removeAttribute("aria-invalid");
    const table = rows(beta2);
    draw(beta2, table);
    fill(table, beta2);
    slider.setAttribute("aria-valuetext", String(beta2));
    for (const preset of document.querySelectorAll("[data-beta]")) {
      preset.setAttribute("aria-pressed", String(Number(preset.dataset.beta) === beta2));
    }
    showShare();
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
  run.addEventListener("input", showShare);
  choose(beta2);
})();
