// @ts-check
// The page of a specification: sends what is changed, shows what the server makes of it, and knows no rules.
import { morph } from "./morph.js";

const body = document.body;
const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const steps = document.getElementById("steps");

/** One request after the other, so that each change is made to what the one before it left. */
let last = Promise.resolve();

/**
 * @param {string} where
 * @param {Record<string, unknown>} asked
 * @returns {Promise<{status: number, answer: Record<string, any>}>}
 */
async function post(where, asked) {
  try {
    const response = await fetch(where, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
    });
    const kind = response.headers.get("Content-Type") ?? "";
    const answer = kind.startsWith("application/json") ? await response.json() : { said: await response.text() };
    return { status: response.status, answer };
  } catch {
    return { status: 0, answer: { said: "Studio does not answer. Is it still running? Nothing was changed." } };
  }
}

/** @param {string} words */
function say(words) {
  said.textContent = words;
}

/** @param {Record<string, unknown>} asked */
function act(asked) {
  last = last.then(async () => {
    if (!steps) return;
    const { answer } = await post(`${body.dataset.spec}/act`, { version: steps.dataset.version, ...asked });
    show(answer);
  });
  return last;
}

/** @param {Record<string, any>} answer */
function show(answer) {
  if (steps && typeof answer.html === "string") {
    steps.dataset.version = answer.version;
    morph(steps, answer.html);
    mark();
  }
  say(answer.said ?? "");
  if (typeof answer.go === "string") location.assign(answer.go);
}

/** @param {Element} element */
function value(element) {
  if (element instanceof HTMLInputElement && element.type === "checkbox") return element.checked;
  if (element instanceof HTMLSelectElement && element.multiple) {
    return [...element.selectedOptions].map((option) => option.value);
  }
  return /** @type {HTMLInputElement} */ (element).value;
}

document.addEventListener("change", (event) => {
  const element = event.target;
  if (!(element instanceof HTMLElement)) return;
  const { set, act: name, ...rest } = element.dataset;
  if (set !== undefined) act({ act: "set", at: set, value: value(element) });
  else if (name !== undefined) act({ act: name, ...rest, value: value(element) });
});

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button[data-act]") : null;
  if (!(button instanceof HTMLButtonElement)) return;
  const { act: name, ...rest } = button.dataset;
  act({ act: name, ...rest });
});

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.post) return;
  const { answer } = await post(form.dataset.post, Object.fromEntries(new FormData(form)));
  const note = form.querySelector('[role="alert"]');
  if (answer.said && note) note.textContent = answer.said;
  else show(answer);
});

/** Show the step that the address names, and say which one it is. */
function go() {
  const step = location.hash.slice(1);
  if (!steps || !document.getElementById(step)?.classList.contains("step")) return;
  body.dataset.step = step;
  mark();
  scrollTo(0, 0);
  document.getElementById(`${step}-title`)?.focus();
}

function mark() {
  for (const link of document.querySelectorAll("nav.steps a")) {
    if (link.getAttribute("data-go") === body.dataset.step) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
}

addEventListener("hashchange", go);
go();
mark();
