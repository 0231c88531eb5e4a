CREATE SCHEMA {schema};
CREATE TABLE {schema}.form (version integer NOT NULL);
INSERT INTO {schema}.form VALUES (2);
CREATE TABLE {schema}.questions (
    number serial PRIMARY KEY,
    fingerprint text NOT NULL UNIQUE,
    version integer NOT NULL,
    content text NOT NULL,
    closed text NOT NULL DEFAULT '',
    sealed text
);
CREATE TABLE {schema}.submissions (key bytea PRIMARY KEY, body bytea NOT NULL, question integer NOT NULL);
CREATE TABLE {schema}.loose (
    number bigint PRIMARY KEY, question integer NOT NULL, period text NOT NULL, report bytea NOT NULL
);
CREATE TABLE {schema}.blocks (
    number bigint PRIMARY KEY,
    question integer NOT NULL,
    period text NOT NULL,
    reports integer NOT NULL,
    mixed boolean NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE {schema}.blocks ALTER content SET STORAGE EXTERNAL;
CREATE INDEX blocks_of ON {schema}.blocks (question, period, reports);
CREATE TABLE {schema}.events (
    question integer, kind text, count bigint NOT NULL, PRIMARY KEY (question, kind)
);
