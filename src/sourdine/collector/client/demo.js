// A page that asks one question of the collector that serves it, and shows what leaves the device.
import { Client, SourdineError } from "./sourdine.js";

const at = (id) => document.getElementById(id);
const show = (...ids) => ids.forEach((id) => { at(id).hidden = false; });

function fail(problem) {
  at("problem").textContent = problem instanceof SourdineError
    ? problem.message
    : "Something went wrong, and nothing was sent. Load the page again.";
  show("problem");
  if (!(problem instanceof SourdineError)) throw problem;
}

/** The question that the address names, or the first that is open. */
async function fingerprint() {
  const named = new URLSearchParams(location.search).get("question");
  if (named) return named;
  const answer = await fetch("/v1/questions", { credentials: "omit" });
  const open = answer.ok ? (await answer.json()).questions.find((question) => question.open) : undefined;
  if (!open) throw new SourdineError("The collector has no question that is open. Come back later.", "unknown");
  return open.fingerprint;
}

function choices(labels) {
  for (const [place, label] of labels.entries()) {
    const line = document.createElement("label"), choice = document.createElement("input");
    Object.assign(choice, { type: "radio", name: "answer", value: label, id: `answer-${place}` });
    line.append(choice, label);
    at("answers").append(line);
  }
  at("answers").addEventListener("change", () => { at("send").disabled = false; });
}

/** Where a word or a number is written. */
function field() {
  const input = document.createElement("input");
  Object.assign(input, { type: "text", name: "answer", id: "written", autocomplete: "off" });
  input.setAttribute("aria-labelledby", "legend");
  input.addEventListener("input", () => { at("send").disabled = input.value.trim() === ""; });
  at("answers").append(input);
}

/** An answer as the question takes it: a label, a word, or a number. */
function read(question, text) {
  const isText = question.labels.length || question.announcement.question.oracle.mechanism.startsWith("word-tree/");
  return isText ? text : Number(text.trim().replace(",", "."));
}

function ask(question) {
  at("name").textContent = question.name;
  document.title = question.name;
  at("loading").remove();
  tellCost(question);
  if (question.labels.length) choices(question.labels);
  else field();
  if (question.announcement.tokens) {
    // the page of a collector or shuffler must not see a code: it would know whose report it takes
    throw new SourdineError("This question takes one report for each token, and tokens are given out elsewhere. "
      + "Answer on the page that your code came with.", "token");
  }
  at("answers").disabled = false;
}

function tellCost(question) {
  const { report, device } = question.announcement.price, odds = Math.exp(Number(report));
  const step = 10 ** (Math.floor(Math.log10(odds)) - 1), most = Math.ceil(odds / step) * step; // up, to two digits
  at("odds").textContent = `Epsilon is ${report} for this report and ${device} for all that this device will ever send on `
    + `this question. Whoever sees the report can change their odds between any two of your answers by a factor of at most `
    + `${Number(most.toPrecision(2))}, whatever else they know.`;
  if (question.announcement.question.oracle.mechanism === "grr/1") {
    const kept = Math.round(100 * odds / (odds + question.labels.length - 1));
    at("chances").textContent = `Of 100 people who answer as you do, about ${kept} send this answer, and about ${100 - kept} `
      + "another one, drawn at random.";
    show("chances");
  }
  at("signature").textContent = {
    verified: "The question is signed by whoever asks it, and the signature was checked.",
    unsupported: "This browser cannot check the signature of the question.",
    none: "No key was given to check the question's signature by.",
  }[question.signature];
  show("cost");
}

function tellSent(question, answer, { body, id, row, earlier }) {
  at("answer").textContent = answer;
  at("line").textContent = body.trim();
  at("submission").textContent = id;
  at("earlier").hidden = !earlier;
  if (question.announcement.question.oracle.mechanism === "grr/1") {
    at("reads").textContent = `“${question.labels[parseInt(row, 16)]}”, which may or may not be your answer`;
    show("reads-title", "reads");
  }
  show("sides");
}

async function tellState(client, sending) {
  const { dropped, received } = await sending;
  const waiting = (await client.waiting()).length;
  at("state").textContent = dropped.length
    ? "The collector did not take the report. It is gone, and nothing was counted."
    : waiting
      ? "Kept on this device: it is sent when there is a connection."
      : received
        ? "Sent, and received by the collector."
        : "Sent, and stored by the collector.";
}

async function start() {
  const pins = new URLSearchParams(location.search).getAll("pin");
  const client = await Client.open({ collector: location.origin, pins });
  const question = await client.question(await fingerprint());
  ask(question);
  addEventListener("online", () => { tellState(client, client.send()).catch(fail); });
  client.keepSending();
  at("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = new FormData(at("form")).get("answer");
    at("send").disabled = true;
    try {
      const submission = await client.answer(question, read(question, answer));
      at("answers").disabled = true;
      tellSent(question, answer, submission);
      await tellState(client, submission.sent);
    } catch (problem) {
      fail(problem);
    }
  });
}

start().catch(fail);
