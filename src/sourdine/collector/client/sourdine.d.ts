/** What is refused, and why: `code` for programs, `message` for people. */
export class SourdineError extends Error {
  readonly code:
    | "refused" | "changed" | "signature" | "price" | "oracle" | "older" | "unknown"
    | "no-storage" | "insecure" | "closed" | "answered" | "waiting" | "full" | "token" | "budget"
    | "batch";
}

/** A specification as `sourdine local spec` writes it. */
export interface QuestionFile {
  readonly format: "sourdine local 1" | "sourdine local 2";
  readonly question: string;
  readonly oracle: Readonly<Record<string, string | number | boolean>>;
  readonly labels: readonly string[];
  readonly fingerprint: string;
}

/** Cumulative probabilities in units of 2^-256, in hexadecimal digits, by law; compared, never trusted. */
export type Thresholds = Readonly<Record<string, readonly string[]>>;

/** The body of an announcement: the question and the terms it is asked on. */
export interface Announcement {
  readonly question: QuestionFile;
  readonly thresholds: Thresholds;
  readonly identity: string;
  readonly width: number;
  readonly version: number;
  readonly opens: string;
  readonly closes: string;
  readonly period: "day" | "week" | "month" | "whole";
  readonly retention: number;
  readonly shuffle?: { readonly batch: number; readonly delta: string };
  readonly secret_days: number;
  readonly answers: number;
  /** Through a shuffler, in batches of so many reports at least. */
  readonly shuffle?: { readonly batch: number; readonly delta: string };
  /** The public key of tokens (DER in hexadecimal digits): each report needs one. */
  readonly tokens?: string;
  readonly price: { readonly report: string; readonly device: string };
}

export interface AnnouncementFile {
  readonly format: "sourdine announcement 1";
  readonly announcement: string;
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

/** "verified", or why it is not: no key was pinned, or this browser cannot check Ed25519. */
export type SignatureState = "verified" | "unsupported" | "none";

export interface Terms {
  /** Raw Ed25519 public keys of whoever may ask, 64 hexadecimal digits each. */
  readonly pins?: readonly string[];
  /** Refuse a question whose signature was not verified. */
  readonly requireSignature?: boolean;
  /** Refuse a question that costs a device more than this epsilon in all. */
  readonly mostEpsilon?: number | null;
  /** Refuse a question whose reports are mixed among fewer than this. */
  readonly leastBatch?: number;
}

export class Question {
  readonly name: string;
  readonly labels: readonly string[];
  readonly fingerprint: string;
  readonly identity: string;
  /** The epsilon of one report as an exact fraction, or null for RAPPOR. */
  readonly epsilon: string | null;
  readonly signature: SignatureState;
  readonly announcement: Partial<Announcement>;
  readonly width: number;
  readonly oracle: Oracle;
  static read(file: QuestionFile, beside?: Partial<Announcement>, signature?: SignatureState): Promise<Question>;
  /** A label as its category, a number as it is, or a word as it is told; what is none of them is refused. */
  value(answer: string | number): number | string;
  /** The line of a packed report, with its end. */
  line(row: Uint8Array): string;
}

/** How reports are drawn: for tests and for those who bring their own stream of words. */
export interface Oracle {
  readonly width: number;
  known(value: number | string): number | string;
  sample(value: number | string, words: Words): Uint8Array;
}

/** The 64-bit words of a stream of bytes, the lowest byte first. */
export class Words {
  constructor(bytes: Uint8Array);
}

export function openAnnouncement(file: AnnouncementFile, terms?: Terms): Promise<Question>;

/** Whether a secret drawn on a day has had the days that a question gives it, counted from when it opened. */
export function isOld(day: string, terms: Pick<Announcement, "opens" | "secret_days">, now: number): boolean;

/** The reports of a device with one secret: the same answer always has the same permanent noise. */
export class Reporter {
  readonly secret: CryptoKey;
  constructor(secret: CryptoKey);
  static create(): Promise<Reporter>;
  static from(bytes: Uint8Array): Promise<Reporter>;
  row(question: Question, value: number | string, fresh?: Uint8Array): Promise<Uint8Array>;
  /** What is drawn once for an answer and for ever: the report itself, but for RAPPOR. */
  permanent(question: Question, value: number | string): Promise<Uint8Array>;
  /** The report that is made of a permanent response, once more. */
  again(question: Question, permanent: Uint8Array, fresh?: Uint8Array): Promise<Uint8Array>;
  place(identity: string, count: number): Promise<number>;
  tag(question: Question, value: number | string): Promise<string>;
}

/** A token on its way: `blinded` goes to the issuer, all else stays on the device. */
export class TokenRequest {
  readonly blinded: Uint8Array;
  static draw(
    key: string, given?: { readonly message?: Uint8Array; readonly salt?: Uint8Array; readonly inverse?: bigint },
  ): Promise<TokenRequest>;
  finish(signed: Uint8Array): Promise<string>;
}

/** A submission as it leaves the device: nothing else does. */
export interface Submission {
  readonly id: string;
  readonly url: string;
  readonly body: string;
  readonly token?: string;
}

/** A submission that waits, with what the device keeps beside it. */
export interface WaitingSubmission extends Submission {
  readonly identity: string;
  readonly period: Announcement["period"];
  readonly closes?: string;
  readonly leastBatch?: number;
}

export interface Sending {
  readonly stored: number;
  /** Reports that the collector has in memory, and not on the disk yet. */
  readonly received: number;
  readonly kept: number;
  readonly dropped: readonly { readonly id: string; readonly status: number }[];
}

export interface DeviceLedger {
  readonly entries: readonly { readonly identity: string; readonly name: string; readonly answers: number; readonly epsilon: number }[];
  readonly epsilon: number;
  readonly budget: number | null;
}

export class Client {
  /**
   * With a `budget`, no answer is paid for that would bring the sum of all questions above that epsilon: the first one to
   * a question is refused, and for later ones the last report stands.
   */
  static open(
    options: Terms & { readonly collector: string; readonly database?: string; readonly budget?: number | null },
  ): Promise<Client>;
  /** What this device has paid, by question and in all. */
  ledger(): Promise<DeviceLedger>;
  /** Which question of a questionnaire this device answers: the same one for ever. */
  assigned(questionnaire: { readonly identity: string; readonly questions: readonly string[] }): Promise<string>;
  question(fingerprint: string): Promise<Question>;
  /**
   * `earlier`: the last report went out once more in the place of this answer's, which the question does not allow to
   * be paid for. For the person alone: what is sent, or is not sent, because of it tells of the answer.
   */
  answer(
    question: Question, answer: string | number,
  ): Promise<Submission & { readonly row: string; readonly earlier: boolean; readonly sent: Promise<Sending> }>;
  /** Get the token of a question from its issuer, some time before it is answered. */
  fetchToken(question: Question, options: { readonly issuer: string; readonly code: string }): Promise<void>;
  waiting(): Promise<readonly WaitingSubmission[]>;
  send(): Promise<Sending>;
  keepSending(seconds?: number): () => void;
}
