package codexexec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// stateVersion rises when the state's form changes.
const stateVersion = 1

// state is what the decoder knows of the stream so far.
type state struct {
	Thread  string  `json:",omitempty"`
	Run     string  `json:",omitempty"` // the turn that goes on
	Last    string  `json:",omitempty"` // the last turn of the thread in this stream
	Told    string  `json:",omitempty"` // the run of which a message was given
	Opening bool    `json:",omitempty"` // a turn has begun and said nothing yet
	Total   counts  `json:",omitzero"`  // the thread's sum at the end of the last turn
	Calls   []*call `json:",omitempty"` // open ones, oldest first
}

type snapshot struct {
	Version int
	state
}

// Snapshot returns what the decoder knows of the stream so far.
func (d *stream) Snapshot() ([]byte, error) {
	if reflect.ValueOf(d.state).IsZero() {
		return nil, nil
	}
	b, err := json.Marshal(snapshot{stateVersion, d.state})
	if err != nil {
		return nil, fmt.Errorf("codex-exec: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *stream) Restore(b []byte) error {
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("codex-exec: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("codex-exec: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	d.state = s.state
	return nil
}

// nameOf is the last element of a path without its ending.
func nameOf(path string) string {
	path = strings.ToValidUTF8(path, "\uFFFD") // a path need not be text, but an id must be
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if i := strings.Index(name, ".json"); i > 0 {
		name = name[:i]
	}
	return name
}

func (d *stream) session() string {
	switch {
	case d.Thread != "":
		return d.Thread
	case d.origin != "":
		return d.origin
	}
	return "unknown"
}

// thread decodes thread.started. A thread that is resumed begins again.
func (d *stream) thread(root jsonv.Value) {
	id := ident(root.Get("thread_id"))
	if id != d.Thread {
		d.state = state{Thread: id}
	}
	d.Run, d.Opening, d.Calls = "", false, nil
	d.status("thread:"+d.session(), "thread.started")
}

// wake begins the turn's run with the first thing that is said in it.
func (d *stream) wake(first ...string) {
	if d.Run != "" {
		return
	}
	d.Run = "turn:" + msg.HashKey(append([]string{d.session(), d.Last}, first...)...)
	d.Last, d.Opening, d.Calls = d.Run, false, nil
}

// give adds a message of the turn that goes on.
func (d *stream) give(kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key = kind, key
	m.Session, m.Run = d.session(), d.Run
	m.Agent = msg.Agent{Name: "codex", Kind: msg.KindAgent}
	m.Complete = msg.Complete
	if m.Run != "" && m.Run != d.Told {
		d.Told, m.Signal = m.Run, msg.RunStart
		m.Delegation.CorrelationID = spawn.ID(spawn.Codex, d.Thread)
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(key, typ string) *msg.Message {
	m := d.give(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps the event as it is. It begins no run.
func (d *stream) unknown(typ string, root jsonv.Value) {
	if typ == "" {
		typ = "none"
	}
	told := d.Told
	d.Told = d.Run
	m := d.give(msg.Unknown, "unknown:"+msg.HashKey(d.Run, string(root.Peek())))
	d.Told = told
	m.Hidden, m.Content = true, msg.Raw(root.Raw())
	m.SetAttr("type", typ)
}

// counts are tokens as the protocol counts them: input with what was cached,
// output with the reasoning.
type counts struct {
	Input      uint64 `json:",omitempty"`
	CacheRead  uint64 `json:",omitempty"`
	CacheWrite uint64 `json:",omitempty"`
	Output     uint64 `json:",omitempty"`
	Reasoning  uint64 `json:",omitempty"`
}

func read(v jsonv.Value) counts {
	return counts{
		Input: v.Get("input_tokens").Uint(), CacheRead: v.Get("cached_input_tokens").Uint(), CacheWrite: v.Get("cache_write_input_tokens").Uint(),
		Output: v.Get("output_tokens").Uint(), Reasoning: v.Get("reasoning_output_tokens").Uint(),
	}
}

// since is how much more c is than the older o; c itself if the sum began anew.
func (c counts) since(o counts) counts {
	if c.Input < o.Input || c.CacheRead < o.CacheRead || c.CacheWrite < o.CacheWrite || c.Output < o.Output || c.Reasoning < o.Reasoning {
		return c
	}
	return counts{c.Input - o.Input, c.CacheRead - o.CacheRead, c.CacheWrite - o.CacheWrite, c.Output - o.Output, c.Reasoning - o.Reasoning}
}

// exclusive takes the counts apart, so that their sum is what was processed.
func (c counts) exclusive() msg.Tokens {
	t := msg.Tokens{CacheRead: min(c.CacheRead, c.Input), Reasoning: min(c.Reasoning, c.Output), Provenance: msg.Provider}
	t.CacheWrite = min(c.CacheWrite, c.Input-t.CacheRead)
	t.Input = c.Input - t.CacheRead - t.CacheWrite
	t.Output = c.Output - t.Reasoning
	return t
}

// completed decodes turn.completed: {usage: {input_tokens, cached_input_tokens, output_tokens}}.
func (d *stream) completed(root jsonv.Value) {
	usage := root.Get("usage")
	d.wake("completed", string(usage.Peek()))
	if usage.Is(jsonv.Object) {
		total := read(usage)
		m := d.give(msg.Usage, "usage:"+d.Run)
		m.Hidden, m.Usage = true, total.since(d.Total).exclusive()
		d.Total = total
	}
	m := d.give(msg.Stop, "stop:"+d.Run)
	m.Hidden, m.Signal, m.FinishReason = true, msg.RunEnd, "stop"
	d.Run = ""
}

// failed decodes turn.failed: {error: {message}}.
func (d *stream) failed(root jsonv.Value) {
	text := root.Path("error", "message")
	d.wake("failed", string(text.Peek()))
	m := d.give(msg.Stop, "stop:"+d.Run)
	m.Signal, m.IsError, m.FinishReason = msg.RunEnd, true, "error"
	m.Content = text.Text()
	d.Run = ""
}

// fault decodes error: {message}. The CLI tells of attempts to connect again in
// the same way as of what ends the turn.
func (d *stream) fault(root jsonv.Value) {
	text := root.Get("message")
	if d.Opening {
		d.wake("error", string(text.Peek()))
	}
	m := d.give(msg.Error, "error:"+msg.HashKey(d.session(), d.Run, string(text.Peek())))
	m.IsError, m.Content = true, text.Text()
	if b := body(text); strings.HasPrefix(string(b[:min(len(b), len(reconnecting))]), reconnecting) {
		m.Kind, m.IsError, m.Hidden, m.Signal = msg.Status, false, true, msg.Retry
		m.SetAttr("type", "reconnecting")
	}
}

const reconnecting = "Reconnecting..."

// maxIdent is how long an id or a name may be. Ids are remembered, and must not
// be a way to make the decoder remember a lot.
const maxIdent = 256

// ident is the id or the name in v, "" if v is no string; a hash of it if it is
// too long.
func ident(v jsonv.Value) string {
	if raw := v.Peek(); len(raw) > maxIdent {
		if !v.Is(jsonv.String) {
			return ""
		}
		v.MarkRead()
		return "long:" + msg.HashKey(string(raw))
	}
	return v.Str()
}

// body is what stands between the quotes of a string, escapes and all.
func body(v jsonv.Value) []byte {
	raw := v.Peek()
	if !v.Is(jsonv.String) || len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}
