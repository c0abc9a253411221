package e2e

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// The tables of OpenCode, as its versions make them, without those of other things.
const (
	openCodeTotals = `cost REAL NOT NULL DEFAULT 0, tokens_input INTEGER NOT NULL DEFAULT 0, tokens_output INTEGER NOT NULL DEFAULT 0,
		tokens_reasoning INTEGER NOT NULL DEFAULT 0, tokens_cache_read INTEGER NOT NULL DEFAULT 0, tokens_cache_write INTEGER NOT NULL DEFAULT 0`
	openCodeFirst = `
		CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL,
			time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, ` + openCodeTotals + `);
		CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
		CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);`
	openCodeSecond = `
		CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, fork_session_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL, title TEXT,
			version TEXT NOT NULL, agent TEXT, model TEXT, revert TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_idle INTEGER, ` + openCodeTotals + `);
		CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES session_v2(id) ON DELETE CASCADE, type TEXT NOT NULL, seq INTEGER NOT NULL,
			time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);`
)

// openCodeDB is a database that OpenCode writes.
type openCodeDB struct {
	*home
	*sql.DB
	now int64
}

func (d *openCodeDB) do(statement string, args ...any) {
	d.Helper()
	_, err := d.Exec(statement, args...)
	d.must(err)
}

// message writes a message of version 2, or a later state of it.
func (d *openCodeDB) message(session, id, typ, data string) {
	d.now += 100
	d.do(`INSERT INTO session_message SELECT ?, ?, ?, (SELECT count(*) FROM session_message), ?, ?, ? ON CONFLICT (id) DO UPDATE SET time_updated=excluded.time_updated, data=excluded.data`,
		id, session, typ, d.now, d.now, strings.ReplaceAll(data, "NOW", fmt.Sprint(d.now)))
}

// spent adds a request to the sums of a session.
func (d *openCodeDB) spent(session string, in, out, read int) {
	d.do("UPDATE session_v2 SET cost=cost+0.001, tokens_input=tokens_input+?, tokens_output=tokens_output+?, tokens_cache_read=tokens_cache_read+?, time_idle=? WHERE id=?", in, out, read, d.now, session)
}

func openCodeAnswer(content, finish string, in, out, read int) string {
	return fmt.Sprintf(`{"time":{"created":NOW,"streamed":NOW,"completed":NOW},"agent":"build","model":{"id":"claude-sonnet-4-5","providerID":"anthropic"},"content":[%s],"finish":%q,"cost":0.001,`+
		`"tokens":{"input":%d,"output":%d,"reasoning":0,"cache":{"read":%d,"write":0}}}`, content, finish, in, out, read)
}

// TestOpenCodeDatabase follows a database from version 1 over the move to version 2, which copies the messages, to the work of version 2:
// tokens and calls are those that OpenCode adds up, each text is there once, and a sub-agent is below its call.
func TestOpenCodeDatabase(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: opencode, type: sqlite, format: opencode, paths: ["DIR/opencode.db"], interval: 50ms}`)
	db, err := sql.Open("sqlite", "file:"+h.path("opencode.db")+"?_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)")
	h.must(err)
	defer func() { _ = db.Close() }()
	d := &openCodeDB{home: h, DB: db, now: 1788200000000}
	d.do(openCodeFirst)
	const old, lead, scout, fork = "ses_8a10c001f001HarbourOld1", "ses_8a10c002f001HarbourNew1", "ses_8a10c003f001HarbourSub1", "ses_8a10c004f001HarbourFork"
	d.do("INSERT INTO session VALUES (?, 'p', NULL, 's', '/srv/harbour', 'The old quay', '1.18.3', ?, ?, 0.001, 70, 9, 0, 20, 0)", old, d.now, d.now)
	d.do(`INSERT INTO message VALUES ('msg_8a10p001HarbourOld', ?1, ?2, ?2, json_object('role','user','time',json_object('created',?2),'agent','build'))`, old, d.now+1)
	d.do(`INSERT INTO part VALUES ('prt_8a10p001HarbourOld', 'msg_8a10p001HarbourOld', ?1, ?2, ?2, '{"type":"text","text":"Who built the quay?"}')`, old, d.now+2)
	d.do(`INSERT INTO message VALUES ('msg_8a10a001HarbourOld', ?1, ?2, ?2, json_object('role','assistant','parentID','msg_8a10p001HarbourOld','modelID','claude-sonnet-4-5','providerID','anthropic',
		'cost',0.001,'finish','stop','time',json_object('created',?2,'completed',?2+5),'tokens',json('{"input":70,"output":9,"reasoning":0,"cache":{"read":20,"write":0}}')))`, old, d.now+3)
	for i, part := range []string{`{"type":"text","text":"The guild did.","time":{"start":1788200000004,"end":1788200000005}}`, `{"type":"step-finish","reason":"stop","cost":0.001,"tokens":{"input":70,"output":9,"reasoning":0,"cache":{"read":20,"write":0}}}`} {
		d.do(`INSERT INTO part VALUES (?1, 'msg_8a10a001HarbourOld', ?2, ?3, ?3, ?4)`, fmt.Sprintf("prt_8a10a00%dHarbourOld", i+2), old, d.now+4, part)
	}
	h.drain()

	d.do(openCodeSecond) // the move, with the copies that it makes
	d.do("INSERT INTO session_v2 SELECT id, project_id, parent_id, NULL, slug, directory, title, version, NULL, NULL, NULL, time_created, time_updated, NULL, cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write FROM session")
	d.message(old, "msg_8a10p001HarbourOld", "user", `{"text":"Who built the quay?","time":{"created":1788200000001}}`)
	d.message(old, "msg_8a10a001HarbourOld", "assistant", strings.ReplaceAll(openCodeAnswer(`{"type":"text","text":"The guild did."}`, "stop", 70, 9, 20), "NOW", "1788200000003"))
	d.now += 60_000
	session := func(id string, parent any, agent string) {
		d.do("INSERT INTO session_v2 (id, project_id, parent_id, slug, directory, title, version, agent, time_created, time_updated) VALUES (?, 'p', ?, 's', '/srv/harbour', 'The quay', '2.0.26', ?, ?, ?)", id, parent, agent, d.now, d.now)
	}
	answer := func(session, id, content, finish string, in, out, read int) {
		d.message(session, id, "assistant", openCodeAnswer(content, finish, in, out, read))
		d.spent(session, in, out, read)
	}
	d.message(old, "msg_8a10p002HarbourOld", "user", `{"text":"And when?","time":{"created":NOW}}`)
	answer(old, "msg_8a10a002HarbourOld", `{"type":"text","text":"Long ago."}`, "stop", 80, 4, 0)
	d.message(old, "msg_8a10i001HarbourOld", "idle", `{"time":{"created":NOW},"outcome":"succeeded"}`)
	session(lead, nil, "build")
	d.message(lead, "msg_8a10p003HarbourNew", "user", `{"text":"Is the quay sound?","time":{"created":NOW}}`)
	call := `{"type":"tool","id":"toolu_HarbourScout0001","name":"subagent","state":{"status":"%s","input":{"agent":"explore","prompt":"Look below the quay."},"metadata":{}%s},"time":{"created":NOW,"ran":NOW%s}}`
	d.message(lead, "msg_8a10a003HarbourNew", "assistant", fmt.Sprintf(`{"time":{"created":NOW,"streamed":NOW},"agent":"build","model":{"id":"claude-sonnet-4-5","providerID":"anthropic"},"content":[%s]}`, fmt.Sprintf(call, "running", "", "")))
	session(scout, lead, "explore")
	d.message(scout, "msg_8a10p004HarbourSub", "user", `{"text":"You are a subagent spawned by another session.\nLook below the quay.","time":{"created":NOW}}`)
	h.drain() // while the agent works
	answer(scout, "msg_8a10b001HarbourSub", `{"type":"text","text":"Two posts are rotten."}`, "stop", 40, 6, 10)
	d.message(scout, "msg_8a10i002HarbourSub", "idle", `{"time":{"created":NOW},"outcome":"succeeded"}`)
	done := strings.ReplaceAll(fmt.Sprintf(call, "completed", `,"content":[{"type":"text","text":"Two posts are rotten."}]`, `,"completed":NOW`), `"metadata":{}`, `"metadata":{"sessionID":"`+scout+`"}`)
	answer(lead, "msg_8a10a003HarbourNew", done, "tool-calls", 100, 12, 0)
	d.spent(lead, 33, 5, 0) // the title
	answer(lead, "msg_8a10a004HarbourNew", `{"type":"text","text":"No: two posts are rotten."}`, "stop", 110, 15, 50)
	d.message(lead, "msg_8a10i003HarbourNew", "idle", `{"time":{"created":NOW},"outcome":"succeeded"}`)
	d.do("UPDATE session_v2 SET time_idle=?", d.now)
	d.now += 1000
	session(fork, nil, "build") // with copies of the part before, which are older
	d.do(`INSERT INTO session_message SELECT 'msg_8a10f001HarbourFork_'||seq, ?, type, seq, time_created, time_updated, data FROM session_message WHERE session_id=?`, fork, lead)
	d.message(fork, "msg_8a10p005HarbourFork", "user", `{"text":"Which posts?","time":{"created":NOW}}`)
	answer(fork, "msg_8a10a005HarbourFork", `{"type":"text","text":"The outer ones."}`, "stop", 120, 3, 0)
	d.message(fork, "msg_8a10i004HarbourFork", "idle", `{"time":{"created":NOW},"outcome":"succeeded"}`)
	d.do("UPDATE session_v2 SET time_idle=? WHERE id=?", d.now, fork)
	h.drain()

	rows, err := db.Query("SELECT coalesce(parent_id, id), sum(tokens_input), sum(tokens_output), sum(tokens_cache_read) FROM session_v2 GROUP BY 1 ORDER BY 1")
	h.must(err)
	defer func() { _ = rows.Close() }()
	var own []string
	for rows.Next() {
		var id string
		var in, out, read int
		h.must(rows.Scan(&id, &in, &out, &read))
		own = append(own, fmt.Sprint(id, " ", in, " ", out, " ", read))
	}
	h.must(rows.Err())
	if got := h.query("SELECT concat(session_id, ' ', toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(cache_read_tokens))) FROM v_usage GROUP BY session_id ORDER BY session_id"); strings.Join(got, "\n") != strings.Join(own, "\n") {
		t.Errorf("tokens\n%s\nwant those of OpenCode\n%s", strings.Join(got, "\n"), strings.Join(own, "\n"))
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant') AND attributes['type'] != 'chat_history' GROUP BY content HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', child_run_id) FROM v_delegations"); len(got) != 1 || got[0] != "ok "+scout {
		t.Errorf("calls: %q", got)
	}
	if got := h.query("SELECT s.run_id FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND p.kind = 'delegation'"); len(got) != 1 || got[0] != scout {
		t.Errorf("below the call are %q", got)
	}
}
