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
    const { status, answer } = await post(`${body.dataset.spec}/act`, { version: steps.dataset.version, ...asked });
    show(status === 422 ? { ...(await kept()), ...answer } : answer);
  });
  return last;
}

/** All steps as they are kept: a field must not go on showing what was refused. */
async function kept() {
  try {
    const response = await fetch(`${body.dataset.spec}/steps`);
    return response.ok ? await response.json() : {};
  } catch {
    return {};
  }
}

/** @param {Record<string, any>} answer */
function show(answer) {
  if (steps && typeof answer.html === "string") {
    steps.dataset.version = answer.version;
    morph(steps, answer.html);
    mark();
    poll();
    for (const each of document.querySelectorAll("details.code[open]")) unfold(each);
  }
  say(answer.said ?? "");
  if (typeof answer.go === "string") location.assign(answer.go);
}

/** Ask again as long as something goes on in the server. */
let waiting = 0;
function poll() {
  clearTimeout(waiting);
  if (!steps || !document.querySelector("[data-poll]")) return;
  waiting = setTimeout(() => {
    last = last.then(async () => {
      try {
        const response = await fetch(`${body.dataset.spec}/steps`);
        if (response.ok) show(await response.json());
        else poll();
      } catch {
        say("Studio does not answer. Is it still running? What was begun is finished before it ends.");
        poll();
      }
    });
  }, 500);
}

/** Parts that are made when they are asked for; each is filled again when what it shows has changed. */
/** @param {string} what */
async function fill(what) {
  const into = document.getElementById(what);
  const choice = document.getElementById(`${what}-choice`);
  if (!into) return;
  into.setAttribute("aria-busy", "true");
  const place = choice instanceof HTMLSelectElement ? { place: choice.value } : {};
  const { answer } = await post(`${body.dataset.spec}/fill`, { what, ...place, position: slider()?.value });
  into.removeAttribute("aria-busy");
  if (typeof answer.html === "string") morph(into, answer.html);
  say(answer.said ?? "");
}

/** What is folded away is asked for when somebody opens it. */
/** @param {EventTarget | null} details */
function unfold(details) {
  if (!(details instanceof HTMLDetailsElement) || !details.open) return;
  if (details.dataset.fill !== undefined) fill(details.dataset.fill);
}
document.addEventListener("toggle", (event) => unfold(event.target), true);

function slider() {
  const element = document.querySelector("[data-slider]");
  return element instanceof HTMLInputElement ? element : null;
}

/** The forecast follows the slider: one request at a time, and always one for where it stands at last. */
let asking = false;
let again = false;
async function slide() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  do {
    again = false;
    const choice = document.getElementById("noise-choice");
    const noise = choice instanceof HTMLSelectElement ? { noise: choice.value } : {};
    const { answer } = await post(`${body.dataset.spec}/forecast`, { position: slider()?.value, ...noise });
    const into = document.getElementById("forecast");
    const typed = document.getElementById("_privacy_epsilon");
    if (into && typeof answer.html === "string") morph(into, answer.html);
    const drawn = document.getElementById("noise");
    if (drawn && typeof answer.noise === "string") morph(drawn, answer.noise);
    if (typed instanceof HTMLInputElement && answer.epsilon !== undefined) typed.value = String(answer.epsilon);
  } while (again);
  asking = false;
}

document.addEventListener("input", (event) => {
  if (event.target === slider()) slide();
});

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
  if (!(element instanceof HTMLElement) || element instanceof HTMLFormElement) return;
  const { set, act: name, ...rest } = element.dataset;
  if (element === slider()) {
    act({ act: "slide", value: value(element) });
  } else if (rest.fill !== undefined) fill(rest.fill);
  else if (set !== undefined) act({ act: "set", at: set, value: value(element) });
  else if (name !== undefined) act({ act: name, ...rest, value: value(element) });
});

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  if (!(button instanceof HTMLButtonElement)) return;
  const { act: name, fill: what, ...rest } = button.dataset;
  if (what !== undefined) fill(what);
  else if (name !== undefined) act({ act: name, ...rest });
});

/** Forms that wait for their answer: a second click on one asks for nothing more. */
const sent = new WeakSet();

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || sent.has(form)) return;
  sent.add(form);
  await submit(form);
  sent.delete(form);
});

/** @param {HTMLFormElement} form */
async function submit(form) {
  const { act: name, ...rest } = form.dataset;
  if (name !== undefined) {
    await act({ act: name, ...rest, ...Object.fromEntries(new FormData(form)) });
    if (!said.textContent) form.reset();
    return;
  }
  if (!form.dataset.post) return;
  const { answer } = await post(form.dataset.post, Object.fromEntries(new FormData(form)));
  const note = form.querySelector('[role="alert"]');
  if (answer.said && note) note.textContent = answer.said;
  else show(answer);
}

/** Show the step that the address names, and say which one it is. */
function go() {
  const step = location.hash.slice(1);
  if (!steps || !document.getElementById(step)?.classList.contains("step")) return;
  body.dataset.step = step;
  mark();
  scrollTo(0, 0);
  document.getElementById(`${step}-title`)?.focus();
  first(step);
}

/** What a step shows by itself, as soon as somebody looks at it. */
/** @param {string} step */
function first(step) {
  const part = document.querySelector(`#${step} [data-first]`);
  if (part instanceof HTMLElement && part.dataset.first && part.querySelector("button[data-fill]")) fill(part.dataset.first);
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
poll();
