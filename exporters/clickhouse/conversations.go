package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// The times, participants and facts of conversations, and the setups of runs, are sets, bounds and first or last values: to
// add a row again changes nothing. As materialized views of messages they were two thirds of the cost of an insert of live
// traffic, each a plan and a part however few rows there are. So they are derived from the messages that are new: behind an insert, which does
// not wait for it, but every few seconds at most while inserts follow each other, and before a reader of the embedded store has its answer;
// while it has none, minutes later with the attribution, because to derive from a minute's rows costs as much as to store them. What a
// process that ends does not come to derive, the first pass of the attribution of the next one does (collect.go).

// conversationsEvery is how old what is derived of conversations may become while rows are stored.
const conversationsEvery = 5 * time.Second

// underived is which messages are not in the tables that are derived from them.
type underived struct {
	deriving sync.Mutex // held while they are

	mu    sync.Mutex
	since time.Time     // the begin of the first insert of those that are; zero: there are none
	have  derivable     // what these may have
	last  time.Time     // when they were derived last
	some  chan struct{} // holds a value when there are
}

// derivable is what some message may have, beside being one of a conversation. What none has is not looked for: prompts and tools are in
// contents, which are most of the bytes of a backlog.
type derivable struct {
	fact, prompt, tools, effort bool
	// contents are the hashes of all prompts and tools; nil: there are none, or the store has to compute them.
	contents *hashes
}

// anyDerivable is for messages that are not known.
func anyDerivable() derivable { return derivable{fact: true, prompt: true, tools: true, effort: true} }

// or returns the properties of both, whose hashes are those of d from then on.
func (d derivable) or(e derivable) derivable {
	contents := d.contents
	switch {
	case !e.prompt && !e.tools:
	case !d.prompt && !d.tools:
		contents = e.contents
	case contents == nil || e.contents == nil || len(*contents)+len(*e.contents) > mostHashes:
		contents = nil
	default:
		maps.Copy(*contents, *e.contents)
	}
	return derivable{d.fact || e.fact, d.prompt || e.prompt, d.tools || e.tools, d.effort || e.effort, contents}
}

// derivableOf returns the properties that messages of a batch have.
func derivableOf(b *export.Batch) (d derivable) {
	if len(b.Rows) > 0 { // encoded
		return anyDerivable()
	}
	found := make(hashes)
	var content []byte
	for _, m := range b.Messages {
		d.fact = d.fact || m.Title != "" || m.Client != (msg.Client{}) || slices.ContainsFunc(m.Attrs, func(a msg.Attr) bool { return isFact(a.Key) })
		if m.Kind != msg.System && m.Kind != msg.Status {
			continue
		}
		d.effort = d.effort || slices.ContainsFunc(m.Attrs, func(a msg.Attr) bool { return slices.Contains(effortAttributes, a.Key) })
		prompt := m.Kind == msg.System && m.Role == msg.RoleSystem
		if !prompt && (m.Kind != msg.Status || m.Attr("type") != msg.TypeTools) || m.Content.IsZero() {
			continue
		}
		d.prompt, d.tools = d.prompt || prompt, d.tools || !prompt
		if len(found) > mostHashes {
			continue
		}
		if content = m.Content.Append(content[:0]); prompt {
			found.add(m, withoutNumbers(content))
		} else {
			found.add(m, content)
		}
	}
	if len(found) > 0 && len(found) <= mostHashes {
		d.contents = &found
	}
	return d
}

// effortAttributes are those that state the effort of reasoning, the first that a message has.
var effortAttributes = []string{"request.reasoning", "effort", "reasoning_effort"}

func isFact(attribute string) bool {
	switch attribute {
	case "project", "branch", "session_title", "agent_version", "host", "user", "user.email", "user.id", "user_id":
		return true
	}
	return false
}

// note reports that messages were stored by an insert that began then.
func (c *underived) note(began time.Time, have derivable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() || began.Before(c.since) {
		c.since = began
	}
	c.have = c.have.or(have)
	select {
	case c.some <- struct{}{}:
	default:
	}
}

// wait returns how long until the last time is so long ago.
func (c *underived) wait(every time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(every-time.Since(c.last), 0)
}

// take returns since when there are any.
func (c *underived) take() (since time.Time, have derivable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, have = c.since, c.have
	c.since, c.have = time.Time{}, derivable{}
	return since, have
}

// derive brings the tables of conversations of an exporter up to date. Rows whose derivation failed are derived the next time.
func (c *underived) derive(ctx context.Context, x *Exporter) error {
	c.deriving.Lock()
	defer c.deriving.Unlock()
	since, have := c.take()
	if since.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.settings.Timeout)
	defer cancel()
	if err := attributorOf(x).conversationsOf(ctx, since, have); err != nil {
		c.note(since, have)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	return nil
}

// conversationsOf derives from the messages that inserts since then have stored. The server has dated them: its clock is read before the time
// that has passed by ours, so that no statement that waits misses a row.
func (p attributor) conversationsOf(ctx context.Context, began time.Time, have derivable) error {
	var clock int64
	if err := p.c.db.QueryRow(ctx, "SELECT toUnixTimestamp64Milli(now64(3))").Scan(&clock); err != nil {
		return fmt.Errorf("clickhouse: conversations: %w", err)
	}
	return p.conversations(ctx, millis(time.UnixMilli(clock).Add(-time.Since(began)-clockSlack)), have)
}

// keep derives behind inserts, until ctx ends.
func (c *underived) keep(ctx context.Context, x *Exporter) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.some:
		}
		if x.keeper.reader(ctx, x.conn.standby, attributeUnread) != nil {
			return
		}
		if pause(ctx, c.wait(x.settings.ConversationsEvery)) != nil {
			return
		}
		if err := c.derive(ctx, x); err != nil && ctx.Err() == nil {
			x.settings.Logger.Warn("clickhouse: the lists of conversations are behind", "error", err)
			if pause(ctx, conversationsEvery) != nil {
				return
			}
		}
	}
}

// conversations derives from the messages that were stored since a time, an expression.
func (p attributor) conversations(ctx context.Context, since string, have derivable) error {
	const account = "coalesce(nullIf(attributes['user'], ''), nullIf(attributes['user.email'], ''), nullIf(attributes['user.id'], ''), attributes['user_id'])"
	statements := []string{fmt.Sprintf(`INSERT INTO %s (tenant, session_id, began, latest, asked, first_at, last_at, sources, formats, agents, models, seen)
SELECT tenant, session_id, min(ts), max(ts), maxIf(ts, kind = 'user'), minOrNullIf(ts, NOT hidden AND NOT inferred), maxOrNullIf(ts, NOT hidden AND NOT inferred),
    groupUniqArray(toString(source)), groupUniqArray(toString(format)), groupUniqArrayIf(toString(agent_name), kind != 'user'), groupUniqArrayIf(toString(model), model != ''), max(ingest_ts)
FROM %s
WHERE ingest_ts >= %s AND is_deleted = 0
GROUP BY tenant, session_id`, p.s.name("sessions"), p.s.name("messages"), since)}
	if have.fact {
		statements = append(statements, fmt.Sprintf(`INSERT INTO %s (tenant, session_id, began, project, branch, title, agent_version, host, user, seen)
SELECT tenant, session_id, min(x.ts), argMinIfState(x.project, (x.ts, x.seq), toUInt8(x.project != '')), argMaxIfState(x.branch, (x.ts, x.seq), toUInt8(x.branch != '')),
    argMaxIfState(x.title, (x.ts, x.seq), toUInt8(x.title != '')), argMaxIfState(x.agent_version, (x.ts, x.seq), toUInt8(x.agent_version != '')),
    argMinIfState(x.host, (x.ts, x.seq), toUInt8(x.host != '')), argMaxIfState(x.user, (x.ts, x.seq), toUInt8(x.user != '')), max(x.ingest_ts)
FROM
(
    SELECT tenant, session_id, ts, seq, ingest_ts, attributes['project'] AS project, attributes['branch'] AS branch, attributes['session_title'] AS title,
        attributes['agent_version'] AS agent_version, attributes['host'] AS host, %s AS user
    FROM %s
    WHERE ingest_ts >= %s AND is_deleted = 0 AND (kind IN ('user', 'status', 'system') OR mapContains(attributes, 'project') OR mapContains(attributes, 'agent_version'))
) AS x
WHERE concat(x.project, x.branch, x.title, x.agent_version, x.host, x.user) != ''
GROUP BY tenant, session_id`, p.s.name("session_facts"), account, p.s.name("messages"), since))
	}
	if have.prompt || have.tools || have.effort {
		statements = append(statements, p.setups(since, have))
	}
	for _, sql := range statements {
		if err := p.c.derive(ctx, sql+p.deriving()); err != nil {
			return fmt.Errorf("clickhouse: conversations: %w", err)
		}
	}
	return nil
}

// setups derives the setups of runs. Those that no message has are not looked for.
func (p attributor) setups(since string, have derivable) string {
	prompt, tools, effort := "''", "''", "''"
	ofPrompt, ofTools := "lower(hex(sipHash64(replaceRegexpAll(content, '[0-9]+', '0'))))", "lower(hex(sipHash64(content)))"
	some := " AND content != ''"
	if have.contents != nil {
		ofPrompt, ofTools, some = have.contents.value(), have.contents.value(), ""
	}
	var rows []string // that may have one of them
	if have.prompt {
		prompt = fmt.Sprintf("if(kind = 'system' AND role = 'system'%s, %s, '')", some, ofPrompt)
		rows = append(rows, "kind = 'system' AND role = 'system'")
	}
	if have.tools {
		tools = fmt.Sprintf("if(kind = 'status' AND attributes['type'] = %s%s, %s, '')", quoteText(msg.TypeTools), some, ofTools)
		rows = append(rows, fmt.Sprintf("kind = 'status' AND attributes['type'] = %s", quoteText(msg.TypeTools)))
	}
	if have.effort {
		effort = "coalesce(" + strings.TrimSuffix(list("nullIf(attributes['%s'], '')", effortAttributes...), ", ") + ", '')"
		rows = append(rows, "concat("+strings.TrimSuffix(list("attributes['%s']", effortAttributes...), ", ")+") != ''")
	}
	return fmt.Sprintf(`INSERT INTO %s (tenant, session_id, run_id, began, prompt, tools, effort, seen)
SELECT tenant, session_id, run_id, min(x.ts), argMinIfState(x.prompt, (x.ts, x.seq), toUInt8(x.prompt != '')), argMinIfState(x.tools, (x.ts, x.seq), toUInt8(x.tools != '')),
    argMaxIfState(x.effort, (x.ts, x.seq), toUInt8(x.effort != '')), max(x.ingest_ts)
FROM
(
    SELECT tenant, session_id, run_id, ts, seq, ingest_ts, %s AS prompt, %s AS tools, %s AS effort
    FROM %s
    WHERE ingest_ts >= %s AND is_deleted = 0 AND kind IN ('system', 'status') AND (%s)
) AS x
WHERE concat(x.prompt, x.tools, x.effort) != ''
GROUP BY tenant, session_id, run_id`, p.s.name("run_setups"), prompt, tools, effort, p.s.name("messages"), since, strings.Join(rows, " OR "))
}

// DeriveConversations derives the tables of conversations from all messages, for a program that copies rows.
func DeriveConversations(ctx context.Context, s ConnSettings) error {
	c, err := open(s, false)
	if err != nil {
		return err
	}
	defer c.Close()
	return attributor{c: c, s: Schema{Database: c.database}}.conversations(ctx, "toDateTime64(0, 3, 'UTC')", anyDerivable())
}
