"use strict";
// The warmup factors, with the formulas of tfwarmup/factors.py, so that both give the same numbers.
const Warmups = (() => {
  const FAR = 80; // the warmup is over where -t log(beta_2) exceeds this

  function xCothXMinus1(x) {
    const square = x * x;
    let tail = 19;
    for (let odd = 17; odd > 1; odd -= 2) tail = odd + square / tail;
    return square / tail;
  }

  const rhoInf = (beta2) => (1 + beta2) / (1 - beta2);
  const linearPeriod = (beta2) => 2 / (1 - beta2);
  const exponentialPeriod = (beta2) => 1 / (1 - beta2);

  // rho_t - constant; the textbook formula loses precision where beta_2 is near 1.
  function rhoMinus(constant, t, beta2) {
    const rate = -Math.log(beta2);
    const x = Math.min(rate * t, FAR);
    if (x < 2) return t - constant - (2 / rate) * (xCothXMinus1(x / 2) - xCothXMinus1(rate / 2));
    return rhoInf(beta2) - constant - (2 * t) / Math.expm1(Math.max(x, 1));
  }

  function momentumSteps(beta2) {
    let t = 0;
    while (rhoMinus(0, t + 1, beta2) <= 4) t += 1;
    return t;
  }

  function radamAfter(t, beta2) {
    const limit = rhoInf(beta2);
    const excess = Math.max(rhoMinus(4, t, beta2), 0);
    const squared = excess * ((excess + 2) / (excess + 4)) * (limit / ((limit - 4) * (limit - 2)));
    return Math.min(Math.sqrt(squared), 1);
  }

  // For each method: beta_2 to omega as a function of t.
  const FACTORS = {
    untuned_linear: (beta2) => (t) => Math.min(t / linearPeriod(beta2), 1),
    untuned_exponential: (beta2) => (t) => -Math.expm1(-t / exponentialPeriod(beta2)),
    radam: (beta2) => {
      const steps = momentumSteps(beta2);
      return (t) => (t > steps ? radamAfter(t, beta2) : 0);
    },
  };

  function effectivePeriod(name, beta2) {
    if (name === "untuned_linear") {
      const last = Math.floor(linearPeriod(beta2));
      return last - (last * (last + 1)) / (2 * linearPeriod(beta2));
    }
    if (name === "untuned_exponential") return 1 / Math.expm1(1 / exponentialPeriod(beta2));
    const omega = FACTORS.radam(beta2);
    let total = 0;
    for (let t = Math.ceil(FAR / 2 / -Math.log(beta2)); t > 0; t -= 1) total += 1 - omega(t);
    return total;
  }

  // The first update whose factor reaches a level, by bisection, as the factors never fall.
  function firstReaching(level, omega, beta2) {
    let low = 0;
    let high = Math.ceil(FAR / -Math.log(beta2));
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (omega(middle) >= level) high = middle;
      else low = middle;
    }
    return high;
  }

  return { FACTORS, effectivePeriod, firstReaching, momentumSteps, rhoInf, linearPeriod, exponentialPeriod };
})();
