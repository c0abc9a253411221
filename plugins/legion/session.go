package legion

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// session is what is remembered of one minion's conversation. Exported fields
// are its state.
type session struct {
	id    string
	Used  uint64           `json:"used"` // when it was last spoken of, by the decoder's clock
	Open  bool             `json:"open,omitempty"`
	Cut   bool             `json:"cut,omitempty"`  // the turn was interrupted
	Stop  string           `json:"stop,omitempty"` // the key of the line that ended the turn
	Top   lane             `json:"top"`
	Said  said             `json:"said,omitzero"` // in Top
	Calls map[string]*call `json:"calls,omitempty"`
	Done  []string         `json:"done,omitempty"` // calls with their result, oldest first
	Dir   string           `json:"dir,omitempty"`  // where it works
}

// lane is a run: a turn of the session, or a sub-agent below one of its calls.
type lane struct {
	Run    string `json:"run,omitempty"`
	Parent string `json:"parent,omitempty"` // run
	Call   string `json:"call,omitempty"`   // that caused it
	Agent  string `json:"agent,omitempty"`
	Model  string `json:"model,omitempty"`
	Tally  tally  `json:"tally,omitzero"`
	Told   int    `json:"told,omitempty"` // how often its tokens were given
}

// said is the last text of a turn, for a result line repeats it. The text is kept
// as it was written, and only its sum goes into a snapshot: most texts are never
// asked for.
type said struct {
	Bytes int    `json:"bytes,omitempty"` // decoded
	Sum   uint32 `json:"sum,omitempty"`

	raw    []byte
	quoted bool
	kept   bool // raw has the text, and Bytes and Sum are not yet of it
}

func (s *said) set(sc *scratch, t msg.Text) {
	raw, quoted := t.Alias()
	if raw == nil || len(raw) > maxKept {
		*s = said{raw: s.raw[:0]}
		s.Bytes, s.Sum = sumOf(sc.plain(t))
		return
	}
	s.raw, s.quoted, s.kept = append(s.raw[:0], raw...), quoted, true
}

// settle makes Bytes and Sum those of the text.
func (s *said) settle(sc *scratch) {
	if s.kept {
		t := msg.Raw(s.raw)
		if s.quoted {
			t = msg.Quoted(s.raw)
		}
		s.Bytes, s.Sum = sumOf(sc.plain(t))
		s.kept = false
	}
}

// is reports whether t is the text.
func (s *said) is(sc *scratch, t msg.Text) bool {
	raw, quoted := t.Alias()
	if s.kept && quoted == s.quoted && bytes.Equal(raw, s.raw) {
		return true
	}
	s.settle(sc)
	size, sum := sumOf(sc.plain(t))
	return size == s.Bytes && sum == s.Sum
}

func sumOf(b []byte) (int, uint32) { return len(b), crc32.ChecksumIEEE(b) }

// mark says on a message which run it belongs to.
func (l *lane) mark(m *msg.Message) {
	m.Run = l.Run
	if l.Call != "" {
		m.ParentRun, m.ParentCall, m.Delegation.Link = l.Parent, l.Call, msg.ByNativeID
		m.Agent = msg.Agent{Name: l.Agent, Kind: msg.KindAgent}
	}
}

// session returns the session of a record: the one it names, else the one that
// spoke before, else the one that the file is named after. known says that there was one.
func (d *Decoder) session(out *decoder.Output, h *head, envelope jsonv.Value) (s *session, known bool) {
	id := peek(h.session)
	if len(id) == 0 {
		id = peek(envelope)
	}
	if s := d.last; s != nil && (len(id) == 0 || string(id) == s.id) {
		return s, true
	}
	if len(id) == 0 {
		id = peek(h.metadata.Get("session_id"))
	}
	if len(id) == 0 {
		id = []byte(d.origin.session)
	}
	s = d.sessions[string(id)]
	if known = s != nil; !known {
		s = &session{id: string(id), Calls: make(map[string]*call)}
		d.sessions[s.id] = s
	}
	d.clock++
	s.Used, d.last = d.clock, s
	if len(d.sessions) > maxSessions {
		old := d.inOrder()[0]
		old.tell(out, msg.Complete)
		delete(d.sessions, old.id)
	}
	return s, known
}

// inOrder returns the sessions, the one that was silent longest first.
func (d *Decoder) inOrder() []*session {
	return slices.SortedFunc(maps.Values(d.sessions), func(a, b *session) int { return cmp.Compare(a.Used, b.Used) })
}

// begin starts a turn.
func (r *record) begin(run string) {
	s := r.s
	if run == s.Top.Run && s.Open {
		return // the same prompt, told again
	}
	run = strings.Clone(run)
	s.Top.settle(r.out, s)
	s.Top = lane{Run: run}
	s.Said.set(r.sc, msg.Text{})
	s.Open, s.Cut, s.Stop = true, false, ""
}

// speak makes sure that a turn is running, because the agent says something: a
// background task's notification brings about a turn without a prompt.
func (r *record) speak() {
	if r.lane != &r.s.Top || r.s.Open {
		return
	}
	var text msg.Text
	if len(r.at.raw) == 0 {
		text = msg.Raw(r.root.Raw())
	}
	r.begin("turn:" + r.key("", 0, text))
}

// origin is what a stream's name says.
type origin struct {
	session string
	legion  string // whose comms.jsonl it is
}

// originOf takes apart sessions/<id>/messages.jsonl and
// legions/<id>/minions/<id>/comms.jsonl; any other file is named after itself.
func originOf(s string) (o origin) {
	s, _, _ = strings.Cut(strings.ReplaceAll(s, `\`, "/"), "?")
	dir, base := path.Split(path.Clean(s))
	dir = path.Base(dir)
	o.session = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".jsonl")
	if strings.HasPrefix(base, "messages.") || strings.HasPrefix(base, "comms.") {
		o.session = dir
	}
	if o.session == "" || o.session == "." || o.session == "/" || o.session == "-" {
		o.session = "legion"
	}
	o.legion = o.session
	if _, rest, ok := strings.Cut("/"+s, "/legions/"); ok {
		if id, _, _ := strings.Cut(rest, "/"); id != "" {
			o.legion = id
		}
	}
	return o
}

// tell gives the tokens of all runs that no result line gave.
func (s *session) tell(out *decoder.Output, c msg.Completeness) {
	s.Top.tell(out, s, c)
	for _, call := range s.inOrder() {
		if call.Child != nil {
			call.Child.tell(out, s, c)
		}
	}
}
