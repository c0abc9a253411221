package clickhouse

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
)

// The facts of turns and the attributes of conversations are read by the attribution alone, which is derived
// every 15 seconds at most, and the machine of a conversation is not read sooner. As materialized views they cost each
// insert of live traffic a plan and a part of a table; so the attribution collects them from the rows that are new.

// collectedFacts is the name in rollup_hours of the time up to which the rows of every sidecar are collected.
const collectedFacts = "all facts and conversations"

// collected returns the server's time, and up to when the facts of all rows are collected.
func (p attributor) collected(ctx context.Context) (now, until time.Time, err error) {
	var at, to int64
	if err := p.c.db.QueryRow(ctx, fmt.Sprintf("SELECT toUnixTimestamp64Milli(now64(3)), toUnixTimestamp64Milli(toDateTime64((SELECT max(until) FROM %s WHERE name = '%s'), 3, 'UTC'))",
		p.s.name("rollup_hours"), collectedFacts)).Scan(&at, &to); err != nil {
		return now, until, fmt.Errorf("clickhouse: facts of turns: %w", err)
	}
	return time.UnixMilli(at), time.UnixMilli(to), nil
}

func (p attributor) noteCollected(ctx context.Context, until, at time.Time) error {
	return p.c.Exec(ctx, fmt.Sprintf("INSERT INTO %s (name, until, at) VALUES ('%s', %s, %s)", p.s.name("rollup_hours"), collectedFacts, millis(until), millis(at)))
}

// collect copies the facts of the rows that were stored since a time. To copy one again changes nothing: the
// version, or the first value, decides.
func (p attributor) collect(ctx context.Context, since time.Time) error {
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO %s (tenant, session_id, trace_id, began, source, format, agent_name, project, branch, agent_version, host, user, caller_trace, seen, ver)
SELECT tenant, session_id, lower(hex(s.trace_id)), ts, source, format, agent_name, project, branch, agent_version, host, user,
    arrayFirst((t, a) -> a['earshot.link'] = 'delegation', links.trace_id, links.attributes), toDateTime(ingest_ts, 'UTC'), ver
FROM %s AS s
WHERE ingest_ts >= %s AND kind IN ('run', 'workflow') AND empty(parent_span_id) AND is_deleted = 0`, p.s.name("turn_facts"), p.s.name("spans"), millis(since)),
		fmt.Sprintf(`INSERT INTO %s (tenant, session_id, began, host, seen)
SELECT tenant, session_id, min(s.ts) AS began, argMinIfState(toString(s.host), (s.ts, toUInt64(0)), toUInt8(1)), max(s.ingest_ts)
FROM %s AS s
WHERE ingest_ts >= %s AND kind IN ('run', 'workflow') AND host != '' AND is_deleted = 0
GROUP BY tenant, session_id`, p.s.name("session_facts"), p.s.name("spans"), millis(since)),
		fmt.Sprintf(`INSERT INTO %[1]s (tenant, session_id, name, value, seen)
SELECT tenant, session_id, k AS name, argMinState(attributes[k], (ts, seq)), max(ingest_ts)
FROM %[2]s
ARRAY JOIN arrayFilter(k -> match(k, %[3]s) AND attributes[k] != '', mapKeys(attributes)) AS k
WHERE ingest_ts >= %[4]s AND is_deleted = 0 AND kind IN ('user', 'status', 'system') AND arrayExists(k -> match(k, %[3]s), mapKeys(attributes))
GROUP BY tenant, session_id, name`, p.s.name("session_attributes"), p.s.name("messages"), quoteText(attribution.KeptAttributes), millis(since)), // rows without one are not joined
	} {
		if err := p.c.derive(ctx, sql+p.deriving()); err != nil {
			return fmt.Errorf("clickhouse: facts of turns: %w", err)
		}
	}
	return nil
}

// deriving are the settings of an insert that derives.
func (p attributor) deriving() string {
	settings := " SETTINGS insert_deduplicate = 0, max_threads = 1, max_insert_threads = 1, optimize_on_insert = 0"
	if p.s.Cluster != "" { // they are read at once
		settings += ", distributed_foreground_insert = 1"
	}
	return settings
}

// arrivals is since when rows were stored that no pass has attributed.
type arrivals struct {
	mu    sync.Mutex
	since time.Time     // the begin of their first insert; zero: there are none
	taken time.Time     // that of the rows whose pass has not come to its end; zero: there is none
	known bool          // a pass was of the rows of the processes before
	some  chan struct{} // holds a value when there are
}

func newArrivals() *arrivals { return &arrivals{some: make(chan struct{}, 1)} }

// note reports that rows were stored by an insert that began then.
func (a *arrivals) note(began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() || began.Before(a.since) {
		a.since = began
	}
	select {
	case a.some <- struct{}{}:
	default:
	}
}

// take returns since when there are any, for a pass.
func (a *arrivals) take() (since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, a.since = a.since, time.Time{}
	if a.taken.IsZero() {
		a.taken = since
	}
	select {
	case <-a.some:
	default:
	}
	return since
}

// attributed reports that the pass has come to its end.
func (a *arrivals) attributed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken, a.known = time.Time{}, true
}

// left returns whether rows are without attribution when no pass runs any more, and since when: zero if those of
// the processes before may be, too.
func (a *arrivals) left() (since time.Time, some bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if since = a.taken; since.IsZero() {
		since = a.since
	}
	some = !since.IsZero()
	if !a.known {
		since = time.Time{}
	}
	return since, some
}
