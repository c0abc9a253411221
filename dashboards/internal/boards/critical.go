package boards

import "strings"

// The critical path of core/blame in SQL: its package comment has the rules, and a
// test holds both to the same paths over random trees. Grafana asks ClickHouse alone, so
// the rules are here once more. Two equal steps, which blame orders by their subtrees, are
// ordered by id here, and a run that has a trace of its own is not followed.
//
// Each part is a scalar with as few references as possible: the server plans a part again
// for each. told are the recorded spans of the trace; moved, the same with the clock skew of
// each against its parent; stretched, the ends of spans that have none of their own; known,
// the spans on the clock of their parents, with the end of the work known below them;
// steps, for each span, the times in which its children may gate it. From those the path
// descends, segment by segment.

// stepType is a time in which a step may gate its parent: its end, its start, its kind,
// the name to show, its clock, its waits for a person.
const stepType = `Tuple(e Int64, s Int64, kind UInt8, name String, agent String, id String, label String, d Int64, status String, waits Array(Tuple(Int64, Int64)))`

// spanType is a span of told or known.
const spanType = `Tuple(id String, parent String, kind UInt8, name String, agent String, status String, s Int64, e Int64, open Bool, async Bool, done Int64, d Int64, waits Array(Tuple(Int64, Int64)))`

// tiles divides since..until among steps, which are in the order of their ends: tuples of
// from, until and step, the last first; a gap has a step without an id.
func tiles(steps, since, until string) string {
	return strings.NewReplacer("STEPS", steps, "SINCE", since, "UNTIL", until, "STEP", stepType).Replace(`arrayFold(
        (w, i) -> if(w.1 <= SINCE, w, arrayMap(
          t -> arrayMap(g -> (g, arrayPushBack(w.2, (g, w.1, t))), [greatest(SINCE, if(t.id != '', t.s, arrayLast(x -> x.e < w.1, STEPS).e))])[1],
          [arrayFirst(x -> x.e >= w.1 AND x.s < w.1, STEPS)])[1]),
        range(2 * length(STEPS) + 1), (UNTIL, CAST([], 'Array(Tuple(Int64, Int64, STEP))'))).2`)
}

// step makes a step of the span k out of when it begins and ends.
func step(from, to, label string) string {
	return "CAST((" + to + ", " + from + ", k.kind, k.name, k.agent, k.id, " + label + ", k.d, k.status, k.waits), '" + stepType + "')"
}

// families groups spans by the span above: p, which is empty for the roots, and kids.
func families(spans string) string {
	return `(SELECT end.1 AS above, anyIf(span, end.2) AS p, groupArrayIf(span, NOT end.2) AS kids
      FROM (SELECT arrayJoin(` + spans + `) AS span, arrayJoin([(span.id, true), (span.parent, false)]) AS end)
      GROUP BY above)`
}

// inShown is the condition for ended spans of the trace. The view otel_traces has them too; to plan
// its maps in each of these scalars takes ten times as long as to read a trace.
const inShown = `lower(hex(trace_id)) = shown AND state != 'open' AND name != ''`

// blameKind is the kind of a span, as package blame counts them.
const blameKind = `multiIf(kind IN ('run', 'workflow'), 0, kind = 'chat', 1, kind = 'delegation' OR delegate_to != '', 3, 2)`

// waitsOf are the times in which a span waited for a person; 0 ends one that did not end.
const waitsOf = `arrayFold((w, x) -> multiIf(
          x.2 IN ('earshot.wait_start', 'earshot.run_pause') AND x.3 != 'outside' AND (empty(w) OR w[-1].2 != 0), arrayPushBack(w, (x.1, toInt64(0))),
          x.2 IN ('earshot.wait_end', 'earshot.run_resume') AND notEmpty(w) AND w[-1].2 = 0, arrayPushBack(arrayPopBack(w), (w[-1].1, greatest(x.1, w[-1].1 + 1))),
          w),
        arrayZip(arrayMap(t -> toUnixTimestamp64Nano(t), events.time), CAST(events.name, 'Array(String)'),
          arrayMap(a -> CAST(a['earshot.waits_for'], 'String'), events.attributes)),
        CAST([], 'Array(Tuple(Int64, Int64))'))`

// reportedTogether is the condition for two calls, o and k.
const reportedTogether = `o.id != k.id AND abs(o.e - k.e) <= least(intDiv(o.e - o.s, 100), intDiv(k.e - k.s, 100))`

// sureSteps are the steps except background work that ended in a gap: spans that are not
// reported, calls with children until their work ended, background work whose result a
// call brought, and calls without children minus the time of those with children.
var sureSteps = `arraySort(arrayConcat(
            arrayMap(k -> ` + step("k.s", "k.e", "k.name") + `, arrayFilter(k -> k.open OR k.kind < 2, others)),
            arrayMap(k -> ` + step("k.s", "if(arrayExists(o -> "+reportedTogether+", calls), k.done, k.e)", "k.name") + `, arrayFilter(k -> k.done > 0, calls)),
            arrayMap(b -> arrayMap(k -> ` + step("b.2", "k.done", "k.name") + `, [b.1])[1], brought),
            arrayFlatten(arrayMap(k -> arrayMap(x -> ` + step("x.1", "x.2", `arrayStringConcat(arrayDistinct(arraySort(arrayPushBack(
                  arrayMap(o -> o.name, arrayFilter(o -> o.done = 0 AND `+reportedTogether+`, calls)), k.name))), ' or ')`) + `,
              arrayMap(w -> arrayFilter(x -> x.1 < x.2, arrayPushBack(w.2, (w.1, k.e))), [arrayFold(
                (w, x) -> (greatest(w.1, x.2), if(w.1 < least(x.1, k.e), arrayPushBack(w.2, (w.1, least(x.1, k.e))), w.2)),
                arraySort(arrayConcat(
                  arrayMap(o -> (o.s, o.done), arrayFilter(o -> o.done > 0 AND ` + reportedTogether + `, calls)),
                  arrayMap(b -> (b.2, b.1.done), arrayFilter(b -> b.1.e = k.e, brought)))),
                (k.s, CAST([], 'Array(Tuple(Int64, Int64))')))])[1]),
              arrayFilter(k -> k.done = 0, calls)))))`

// criticalPath has the table path: the visits of the path to spans, with the span's own
// time in each (own), on the span's own clock with its skew.
var criticalPath = `
WITH RECURSIVE ` + shown + ` AS shown,
  (SELECT groupArray(CAST((lower(hex(s.span_id)), if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))), ` + blameKind + `,
      name, if(agent_name = '', concat('(', format, ')'), agent_name), if(outcome = '', 'unset', outcome),
      toUnixTimestamp64Nano(ts), toUnixTimestamp64Nano(ts) + toInt64(duration_ns),
      state = 'idle', async, 0, 0,
      ` + waitsOf + `), '` + spanType + `'))
    FROM spans AS s FINAL
    WHERE ` + inShown + `) AS told,
  (SELECT groupArrayArray(arrayMap(c -> CAST((c.id, c.parent, if(c.kind = 2 AND has(above_runs, c.id), 3, c.kind), c.name, c.agent, c.status, c.s, c.e, c.open,
        c.async AND (c.kind = 3 OR c.kind = 2 AND has(above_runs, c.id)), 0,
        multiIf(c.kind != 0 OR p.id = '', 0, c.s < p.s, p.s - c.s,
          p.kind >= 2 AND NOT p.open AND NOT p.async AND c.e > p.e AND c.s > p.s, -least(c.e - p.e, c.s - p.s), 0), c.waits), '` + spanType + `'), kids))
    FROM (SELECT *, groupArrayArray(if(arrayExists(k -> k.kind = 0, kids), [above], [])) OVER () AS above_runs FROM ` + families("told") + `)) AS moved,
  (SELECT groupArrayArray(arrayMap(c -> (p.id, c.id, c.open, c.e, c.d), arrayFilter(c -> (p.open OR p.async) AND NOT c.async, kids)))
    FROM ` + families("moved") + `) AS edges,
  (WITH RECURSIVE reach AS (
      SELECT '' AS above, '' AS at, true AS goes_on, toInt64(0) AS off, toInt64(0) AS until
      UNION ALL
      SELECT if(reach.at = '', x.1, reach.above) AS above, x.2 AS at, x.3 AS goes_on, reach.off + x.5 AS off, x.4 + reach.off + x.5 AS until
      FROM reach JOIN (SELECT arrayJoin(edges) AS x, arrayJoin([x.1, '']) AS of) AS e ON e.of = reach.at
      WHERE reach.goes_on)
    SELECT CAST((groupArray(above), groupArray(until)), 'Map(String, Int64)')
    FROM (SELECT above, max(reach.until) AS until FROM reach WHERE above != '' GROUP BY above)) AS stretched,
  (SELECT groupArrayArray(arrayMap(c -> CAST((c.id, c.parent, c.kind, c.name, c.agent, c.status, c.s, greatest(c.e, ends[c.id]), c.open, c.async, 0, c.d, c.waits), '` + spanType + `'), spans))
    FROM (SELECT moved AS spans, stretched AS ends)) AS whole,
  (SELECT groupArrayArray(arrayMap(c -> CAST((c.id, c.parent, c.kind, c.name, c.agent, c.status, c.s + c.d, c.e + c.d, c.open, c.async,
        0, c.d, arrayConcat(arrayMap(w -> (w.1, if(w.2 = 0, c.e, w.2)), c.waits),
          if(c.kind IN (1, 2) AND p.kind = 0, arrayMap(w -> (w.1, if(w.2 = 0, p.e, w.2)), p.waits), []))), '` + spanType + `'), kids))
    FROM ` + families("whole") + `) AS closed,
  (SELECT groupArrayArray(if(p.id = '', [], [CAST((p.id, p.parent, p.kind, p.name, p.agent, p.status, p.s, p.e, p.open, p.async,
        arrayMap(done -> if(done > p.s, done, 0), [least(p.e, p.d + arrayMax(arrayMap(k -> if(k.e > k.s, k.e, 0), kids)))])[1], p.d, p.waits), '` + spanType + `')]))
    FROM ` + families("closed") + `) AS known,
  (SELECT groupArray((above, arraySort(arrayConcat(sure, arrayMap(x -> arrayMap(k -> ` + step("greatest(x.2, k.s)", "k.e", "k.name") + `, [x.1])[1],
      arrayFilter(x -> x.2 > 0, arrayMap(a -> (a, arrayFirst(g -> g.1 < a.e AND a.e <= g.2 AND g.2 < pe AND g.3.id = '', gaps).1),
        arrayFilter(a -> NOT has(arrayMap(b -> b.1.id, brought), a.id), asides))))))))
    FROM (
      SELECT above, pe, asides, brought, sure, ` + tiles("sure", "ps", "pe") + ` AS gaps
      FROM (
        SELECT above, ps, pe, asides, brought, ` + sureSteps + ` AS sure
        FROM (
          SELECT *, arrayFilter(b -> b.2 > 0, arrayMap(a -> (a, arrayMap(f -> if(empty(f), toInt64(0), greatest(arrayMin(f), a.s)),
              [arrayMap(k -> k.s, arrayFilter(k -> k.e = a.e AND k.e < pe AND k.done = 0 AND k.s < a.done, calls))])[1]), asides)) AS brought
          FROM (
            SELECT above, p.s - p.d AS ps, p.e - p.d AS pe, arrayFilter(k -> k.e > k.s AND NOT k.async, kids) AS others,
              arrayFilter(k -> k.kind >= 2 AND NOT k.open, others) AS calls, arrayFilter(k -> k.e > k.s AND k.async AND NOT k.open, kids) AS asides
            FROM ` + families("known") + `))))) AS steps,
  path AS (
    SELECT CAST(tuple(0, 0, 0, '', '', '', '', 0, '', []), '` + stepType + `') AS span, toInt64(0) AS since, toInt64(0) AS until, toInt64(-1) AS depth, false AS own, toInt64(0) AS visit, toInt64(0) AS off
    UNION ALL
    SELECT if(t.3.id = '', at, t.3) AS span, t.1 - t.3.d AS since, t.2 - t.3.d AS until, depth + 1 AS depth, t.3.id = '' AS own,
      if(own, began, since) AS visit, clock + t.3.d AS off
    FROM (
      SELECT path.span AS at, path.depth AS depth, path.visit AS began, path.off AS clock,
        arrayJoin(if(path.depth < 0, arrayMap(x -> (x.s, x.e, x), s.list), ` + tiles("s.list", "path.since", "path.until") + `)) AS t
      FROM path LEFT JOIN (SELECT arrayJoin(steps) AS x, x.1 AS above, x.2 AS list) AS s ON s.above = path.span.id
      WHERE NOT path.own AND path.depth < 100)),
  visits AS (
    SELECT span.id AS id, visit, since, until, off, depth, own, span.label AS label, span.agent AS agent, span.status AS status,
      ['run', 'chat', 'tool', 'delegation'][span.kind + 1] AS kind,
      if(own, arrayFold((w, x) -> (w.1 + greatest(toInt64(0), least(x.2, until) - greatest(x.1, w.2)), greatest(x.2, w.2)),
        arraySort(span.waits), (toInt64(0), since)).1, toInt64(0)) AS waited
    FROM path WHERE depth >= 0)
`
