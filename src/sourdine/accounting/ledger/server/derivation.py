"""The trigger by which a server derives every total of a line from the line before.

Roles that may charge add lines by any SQL they like, so a total is theirs to write. The database computes it
again: number, fingerprint, total, period, selection delta and allowances must be what the line before and the
stated price give, and within every limit, or the line is refused. Fractions are pairs of numerics, which
PostgreSQL keeps exactly; their sums follow `budget.add` to the bit.

What the database cannot compute is the price of a mechanism: who charges next prices every line again.
"""

FUNCTIONS = r"""
CREATE FUNCTION {schema}.fraction(written text) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = pg_catalog, pg_temp AS $$
DECLARE bottom text := coalesce(nullif(split_part(written, '/', 2), ''), '1');
BEGIN
    IF written COLLATE "C" !~ '^[0-9]+(/[0-9]+)?$' OR trim(LEADING '0' FROM bottom) = ''
        OR greatest(length(split_part(written, '/', 1)), length(split_part(written, '/', 2))) > 4000 THEN
        RAISE EXCEPTION 'an amount of a line is not a fraction' USING ERRCODE = 'check_violation';
    END IF;
    RETURN ARRAY[split_part(written, '/', 1)::numeric, bottom::numeric];
END $$;

CREATE FUNCTION {schema}.less(first text, second text) RETURNS boolean LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT a[1] * b[2] < b[1] * a[2] FROM {schema}.fraction(first) AS a, {schema}.fraction(second) AS b
$$;

-- Exact while the denominator has at most 512 bits, else rounded up to a multiple of 2^-256.
CREATE FUNCTION {schema}.plus(first text, second text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    a numeric[] := {schema}.fraction(first);
    b numeric[] := {schema}.fraction(second);
    top numeric := a[1] * b[2] + b[1] * a[2];
    bottom numeric := a[2] * b[2];
    common numeric := gcd(top, bottom);
    grid CONSTANT numeric :=
        115792089237316195423570985008687907853269984665640564039457584007913129639936;  -- 2^256
BEGIN
    top := div(top, common);
    bottom := div(bottom, common);
    IF bottom >= grid * grid THEN
        top := div(top * grid + bottom - 1, bottom);
        bottom := grid;
        common := gcd(top, bottom);
        top := div(top, common);
        bottom := div(bottom, common);
    END IF;
    RETURN CASE WHEN bottom = 1 THEN top::text ELSE top::text || '/' || bottom::text END;
END $$;

-- The stretch of the calendar that holds a time; it sorts as the stretches do.
CREATE FUNCTION {schema}.stretch(period text, at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', CASE period
        WHEN 'day' THEN 'YYYY-MM-DD' WHEN 'week' THEN 'IYYY-"W"IW' WHEN 'month' THEN 'YYYY-MM'
        WHEN 'year' THEN 'YYYY' END)
$$;

-- Clocks of hosts differ a little; a line of another day would be paid from the limit of another day.
CREATE FUNCTION {schema}.is_punctual(at timestamptz) RETURNS boolean LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT at BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp() + interval '1 hour'
$$;

CREATE FUNCTION {schema}.refuse_line(number bigint, reason text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'line % does not follow: %', number, reason USING ERRCODE = 'check_violation';
END $$;

-- An allowance after a charge.
CREATE FUNCTION {schema}.spend(allowance jsonb, price text, at timestamptz, number bigint) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    total text := {schema}.plus(allowance->>'spent', price);
    newest text;
    within text;
BEGIN
    IF {schema}.less(allowance->>'cap', total) THEN
        PERFORM {schema}.refuse_line(number, 'the allowance has less');
    END IF;
    allowance := allowance || jsonb_build_object('spent', total);
    IF allowance->>'period' IS NULL THEN RETURN allowance; END IF;
    newest := greatest({schema}.stretch(allowance->>'period', at) COLLATE "C",
        coalesce(allowance->>'newest_period', '') COLLATE "C");
    within := {schema}.plus(
        CASE WHEN newest = allowance->>'newest_period' THEN allowance->>'period_spent' ELSE '0' END, price);
    IF {schema}.less(allowance->>'period_limit', within) THEN
        PERFORM {schema}.refuse_line(number, 'this period of the allowance has less');
    END IF;
    RETURN allowance || jsonb_build_object('newest_period', newest, 'period_spent', within);
END $$;

-- How allowances stand after a line, by how they stood before it.
CREATE FUNCTION {schema}.allowances_after(state jsonb, line jsonb, at timestamptz, number bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rule jsonb := line->'rule';
    act text := rule->>'act';
    author text := line->>'author';
    name text := coalesce(line->>'allowance', rule->>'name');
    old jsonb;
    wish jsonb;
BEGIN
    IF rule IS NULL AND jsonb_array_length(state->'each') = 0 THEN
        IF line ? 'allowance' THEN PERFORM {schema}.refuse_line(number, 'there is no allowance'); END IF;
        RETURN state;
    END IF;
    IF rule IS NOT NULL AND (line ? 'allowance' OR act IS NULL OR line->>'price' <> '0'
        OR coalesce(line->>'delta', '0') <> '0' OR line->'spends' <> '[]') THEN
        PERFORM {schema}.refuse_line(number, 'a rule costs nothing');
    END IF;
    IF act IN ('approve', 'decline') THEN
        SELECT each INTO wish FROM jsonb_array_elements(state->'requests') AS each
            WHERE each->'line' = rule->'line';
        IF wish IS NULL THEN PERFORM {schema}.refuse_line(number, 'no such request waits'); END IF;
        name := wish->>'allowance';
    END IF;
    SELECT each INTO old FROM jsonb_array_elements(state->'each') AS each WHERE each->>'name' = name;
    IF old IS NULL AND act IS DISTINCT FROM 'allow' THEN
        PERFORM {schema}.refuse_line(number, 'there is no such allowance');
    END IF;
    IF (rule IS NULL OR act = 'request') AND jsonb_array_length(old->'authors') > 0
        AND NOT old->'authors' @> to_jsonb(author) THEN
        PERFORM {schema}.refuse_line(number, 'the allowance is for others');
    END IF;
    IF jsonb_array_length(state->'keepers') > 0 AND NOT state->'keepers' @> to_jsonb(author)
        AND (act IN ('allow', 'approve') OR act = 'decline' AND wish->>'author' <> author) THEN
        PERFORM {schema}.refuse_line(number, 'a keeper decides that');
    END IF;
    IF rule IS NULL THEN
        old := {schema}.spend(old, line->>'price', at, number);
    ELSIF act = 'allow' THEN
        IF jsonb_array_length(state->'keepers') = 0 THEN
            state := state || jsonb_build_object('keepers', jsonb_build_array(author));
        END IF;
        state := jsonb_set(state, '{{keepers}}', state->'keepers' || coalesce((
            SELECT jsonb_agg(key ORDER BY place) FROM (
                SELECT key, min(place) AS place FROM jsonb_array_elements(rule->'keepers')
                    WITH ORDINALITY AS given(key, place) GROUP BY key) AS once
            WHERE NOT state->'keepers' @> key), '[]'));
        wish := old;
        old := jsonb_build_object('name', rule->'name', 'cap', rule->'cap', 'authors', rule->'authors',
            'period', rule->'period', 'period_limit', rule->'period_limit',
            'spent', coalesce(wish->>'spent', '0'), 'newest_period', NULL, 'period_spent', '0');
        PERFORM {schema}.fraction(rule->>'cap'), {schema}.fraction(rule->>'period_limit');
        IF wish->'period' = rule->'period' THEN
            old := old || jsonb_build_object(
                'newest_period', wish->'newest_period', 'period_spent', wish->'period_spent');
        END IF;
    ELSIF act = 'request' THEN
        PERFORM {schema}.fraction(rule->>'amount');
        state := jsonb_set(state, '{{requests}}', state->'requests' || jsonb_build_object('line', number,
            'allowance', name, 'amount', rule->'amount', 'author', author));
    ELSIF act IN ('approve', 'decline') THEN
        IF act = 'approve' THEN
            IF wish->>'author' = author THEN
                PERFORM {schema}.refuse_line(number, 'another name must approve a request');
            END IF;
            old := old || jsonb_build_object('cap', {schema}.plus(old->>'cap', wish->>'amount'));
        END IF;
        state := jsonb_set(state, '{{requests}}', coalesce((
            SELECT jsonb_agg(each ORDER BY place) FROM jsonb_array_elements(state->'requests')
                WITH ORDINALITY AS waiting(each, place) WHERE each->'line' <> rule->'line'), '[]'));
    ELSE
        PERFORM {schema}.refuse_line(number, 'no such rule is known');
    END IF;
    IF NOT EXISTS (SELECT 1 FROM jsonb_array_elements(state->'each') AS each WHERE each->>'name' = name) THEN
        state := jsonb_set(state, '{{each}}', state->'each' || old);
    ELSE
        state := jsonb_set(state, '{{each}}', (
            SELECT jsonb_agg(CASE WHEN each->>'name' = name THEN old ELSE each END ORDER BY place)
            FROM jsonb_array_elements(state->'each') WITH ORDINALITY AS known(each, place)));
    END IF;
    IF rule IS NOT NULL THEN
        state := jsonb_set(state, '{{rules}}', to_jsonb((state->>'rules')::bigint + 1));
    END IF;
    IF jsonb_array_length(state->'each') > 100 OR jsonb_array_length(state->'requests') > 100 THEN
        PERFORM {schema}.refuse_line(number, 'there are too many allowances or requests');
    END IF;
    RETURN state;
END $$;

-- The content of a line. PostgreSQL keeps no NUL and no half of a surrogate pair, which a name may hold.
CREATE FUNCTION {schema}.parsed(content text) RETURNS jsonb LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(
        content, '[' || repeat(chr(92), 2) || ']u(0000|[dD][89a-fA-F][0-9a-fA-F]{{2}})',
        chr(92) || 'ufffd', 'g'
    )::jsonb
$$;

-- How allowances stood after a line, with what an older line leaves out.
CREATE FUNCTION {schema}.allowances_of(line jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT '{{"each": [], "requests": [], "keepers": [], "rules": 0}}'::jsonb
        || coalesce(line->'allowances', '{{}}') || CASE WHEN line->'allowances' ? 'each' THEN
        jsonb_build_object('each', (SELECT coalesce(jsonb_agg(jsonb_build_object('spent', '0', 'authors',
            '[]'::jsonb, 'period', NULL, 'period_limit', NULL, 'newest_period', NULL, 'period_spent', '0')
            || each ORDER BY place), '[]')
            FROM jsonb_array_elements(line->'allowances'->'each') WITH ORDINALITY AS known(each, place)))
        ELSE '{{}}' END
$$;

CREATE FUNCTION {schema}.derive() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    terms jsonb;
    last {schema}.lines%ROWTYPE;
    before jsonb;
    line jsonb;
    price text;
    at timestamptz;
    newest text;
    within text;
    state jsonb;
BEGIN
    SELECT content::jsonb INTO terms FROM {schema}.terms WHERE kind = 'ledger';
    IF NOT FOUND THEN RAISE EXCEPTION 'a backup takes no lines'; END IF;
    UPDATE {schema}.mark SET number = NEW.number, fingerprint = NEW.fingerprint
        WHERE number = NEW.number - 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'lines follow one another'; END IF;
    SELECT * INTO last FROM {schema}.lines WHERE number = NEW.number - 1;
    before := {schema}.parsed(coalesce(last.content, '{{}}'));

    -- SHA-256 over the mark before and the content, as a JSON list of two texts in ASCII
    IF NEW.content COLLATE "C" !~ '^[ -~]+$' THEN
        PERFORM {schema}.refuse_line(NEW.number, 'its content is not JSON in ASCII');
    END IF;
    IF NEW.fingerprint <> encode(sha256(convert_to(format('["%s", "%s"]', coalesce(last.fingerprint, ''),
        replace(replace(NEW.content, chr(92), repeat(chr(92), 2)), '"', chr(92) || '"')
        || chr(92) || 'n' || NEW.total), 'UTF8')), 'hex') THEN
        PERFORM {schema}.refuse_line(NEW.number, 'its fingerprint is another');
    END IF;

    line := {schema}.parsed(NEW.content);
    IF jsonb_typeof(line) <> 'object' OR jsonb_typeof(line->'purpose') IS DISTINCT FROM 'string'
        OR jsonb_typeof(line->'author') IS DISTINCT FROM 'string'
        OR jsonb_typeof(line->'price') IS DISTINCT FROM 'string'
        OR jsonb_typeof(line->'spends') IS DISTINCT FROM 'array'
        OR jsonb_typeof(line->'time') IS DISTINCT FROM 'string'
        OR jsonb_typeof(coalesce(line->'secure', 'true')) <> 'boolean'
        OR jsonb_typeof(coalesce(line->'allowance', '""')) <> 'string'
        OR jsonb_typeof(coalesce(line->'rule', '{{}}')) <> 'object'
        OR (line->>'time') COLLATE "C" !~
            '^[0-9]{{4}}(-[0-9]{{2}}){{2}}T[0-9]{{2}}(:[0-9]{{2}}){{2}}([.][0-9]{{1,6}})?[+]00:00$'
        OR NOT line ? 'rule' AND line->'spends' = '[]' THEN
        PERFORM {schema}.refuse_line(NEW.number, 'it lacks what a line states');
    END IF;
    at := (line->>'time')::timestamptz;
    price := line->>'price';

    IF NEW.total <> {schema}.plus(coalesce(last.total, '0'), price) THEN
        PERFORM {schema}.refuse_line(NEW.number, 'its total is not the sum');
    END IF;
    IF {schema}.less(coalesce(terms->'budget'->>'limit', '1099511627776'), NEW.total) THEN
        PERFORM {schema}.refuse_line(NEW.number, 'the budget has less');
    END IF;

    IF terms->'budget' ? 'orders' THEN
        IF jsonb_typeof(line->'shares') IS DISTINCT FROM 'array'
            OR jsonb_array_length(line->'shares') <> jsonb_array_length(terms->'budget'->'orders') THEN
            PERFORM {schema}.refuse_line(NEW.number, 'it lacks a share of each order');
        END IF;
        SELECT jsonb_agg({schema}.plus(coalesce(before->'share_totals'->>(place::integer - 1), '0'), share)
            ORDER BY place) INTO state
            FROM jsonb_array_elements_text(line->'shares') WITH ORDINALITY AS each(share, place);
        IF line->'share_totals' IS DISTINCT FROM state THEN
            PERFORM {schema}.refuse_line(NEW.number, 'its totals of shares are not the sums');
        END IF;
        IF NOT EXISTS (SELECT 1 FROM jsonb_array_elements_text(state) AS each(total)
            WHERE NOT {schema}.less('1', total)) THEN
            PERFORM {schema}.refuse_line(NEW.number, 'no order has so much left');
        END IF;
    END IF;

    state := {schema}.allowances_of(before);
    IF (terms->>'period' IS NOT NULL OR jsonb_path_exists(state, '$.each[*].period ? (@ != null)'))
        AND NOT {schema}.is_punctual(at) THEN
        PERFORM {schema}.refuse_line(NEW.number, 'its time is not that of the server');
    END IF;
    IF terms->>'period' IS NOT NULL THEN
        newest := greatest({schema}.stretch(terms->>'period', at) COLLATE "C",
            coalesce(before->>'period', '') COLLATE "C");
        within := {schema}.plus(
            CASE WHEN newest = before->>'period' THEN before->>'period_total' ELSE '0' END, price);
        IF to_jsonb(newest) IS DISTINCT FROM line->'period'
            OR to_jsonb(within) IS DISTINCT FROM line->'period_total' THEN
            PERFORM {schema}.refuse_line(NEW.number, 'its period or the total of it is another');
        END IF;
        IF {schema}.less(terms->>'period_limit', within) THEN
            PERFORM {schema}.refuse_line(NEW.number, 'the period has less');
        END IF;
    END IF;

    IF terms->>'reserve' IS NOT NULL THEN
        within := {schema}.plus(coalesce(before->>'delta_total', '0'), coalesce(line->>'delta', 'none'));
        IF to_jsonb(within) IS DISTINCT FROM line->'delta_total' THEN
            PERFORM {schema}.refuse_line(NEW.number, 'its total of delta is not the sum');
        END IF;
        IF {schema}.less(terms->>'reserve', within) THEN
            PERFORM {schema}.refuse_line(NEW.number, 'the selection delta has less');
        END IF;
    END IF;

    state := {schema}.allowances_after(state, line, at, NEW.number);
    IF {schema}.allowances_of(line) IS DISTINCT FROM state THEN
        PERFORM {schema}.refuse_line(NEW.number, 'its allowances are others');
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
"""
