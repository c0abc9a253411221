package otlp

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// The bounds of the state.
const (
	maxTraces = 512  // that are remembered
	maxHeld   = 8192 // spans without their ancestors, in all traces
	maxKnown  = 4096 // spans of a trace that were emitted
	maxAge    = 4096 // frames with spans in which a trace with held spans has not grown
	maxDepth  = 256  // of a tree
)

// trace is a trace of which spans have come.
type trace struct {
	ID      string   `json:",omitempty"`
	Session string   `json:",omitempty"`
	Grown   uint64   `json:",omitempty"` // in which frame
	Held    []*Span  `json:",omitempty"` // whose ancestors are not known
	Known   []*known `json:",omitempty"` // that were emitted
	Main    string   `json:",omitempty"` // run of the root
}

// known is the memory of a span.
type known struct {
	ID       string `json:",omitempty"`
	Parent   string `json:",omitempty"`
	Kind     Kind   `json:",omitempty"`
	Run      string `json:",omitempty"`
	Call     string `json:",omitempty"`
	Response string `json:",omitempty"`
	Session  string `json:",omitempty"`
	Agent    string `json:",omitempty"`
	Model    string `json:",omitempty"`
	AgentID  string `json:",omitempty"`
	Tool     string `json:",omitempty"`
	Stub     bool   `json:",omitempty"` // of log records alone

	rebuilt bool
}

// session is the session of the trace: that of its root, else of any span; "" if none has one.
func (t *trace) session() string {
	found := t.Session
	for _, s := range t.Held {
		if s.Session != "" && (found == "" || s.Parent == "" && !s.Stub) {
			found = s.Session
		}
	}
	return found
}

// find returns the trace of that id, moved to the end of the list.
func (d *stream) find(id string) *trace {
	for i := len(d.Traces) - 1; i >= 0; i-- {
		if t := d.Traces[i]; t.ID == id {
			d.Traces = append(slices.Delete(d.Traces, i, i+1), t)
			return t
		}
	}
	t := &trace{ID: id}
	d.Traces = append(d.Traces, t)
	return t
}

// hold adds a span to its trace, unless the trace has it.
func (d *stream) hold(s *Span, grown []*trace) []*trace {
	t := d.find(s.Trace)
	t.Grown = d.Frames
	d.Named = d.Named || s.Session != ""
	d.seenSession = cmp.Or(d.seenSession, s.Session, t.Session)
	for _, k := range t.Known {
		if k.ID == s.ID && !s.Stub && !k.Stub {
			return grown // a client repeats an export whose answer it has not seen
		}
	}
	for i, h := range t.Held {
		if h.ID != s.ID {
			continue
		}
		switch {
		case s.Stub:
			h.merge(s)
		case h.Stub:
			s.merge(h)
			t.Held[i] = s
		}
		return append(grown, t)
	}
	t.Held = append(t.Held, s)
	if !slices.Contains(grown, t) {
		grown = append(grown, t)
	}
	return grown
}

// unplaced reports whether a call is one of MCP whose span may have that of the same call above it, or not.
func (t *trace) unplaced(s *Span) bool {
	if !s.MCP || s.Kind != Tool || s.Call != "" {
		return false
	}
	for id, n := s.Parent, 0; id != "" && n < maxDepth; n++ {
		h := slices.IndexFunc(t.Held, func(o *Span) bool { return o.ID == id && !o.Stub })
		k := slices.IndexFunc(t.Known, func(o *known) bool { return o.ID == id })
		switch {
		case h >= 0 && t.Held[h].Kind > Step, k >= 0 && t.Known[k].Kind > Step:
			return false
		case h >= 0:
			id = t.Held[h].Parent
		case k >= 0:
			id = t.Known[k].Parent
		default:
			return true
		}
	}
	return false
}

// settle emits the spans of a trace whose ancestors are known up to the root.
func (d *stream) settle(t *trace, out *decoder.Output) {
	if len(t.Held) == 0 {
		return
	}
	parents := make(map[string]string, len(t.Held)+len(t.Known))
	done := make(map[string]bool)
	for _, k := range t.Known {
		done[k.ID] = true
	}
	for _, s := range t.Held {
		if !s.Stub {
			parents[s.ID] = s.Parent
		}
		if s.Kind == Agent && s.Run != "" && s.Session != "" { // it names its turn: the spans above it add nothing
			parents[s.ID] = ""
		}
	}
	rooted := func(id string) bool {
		for range maxDepth {
			parent, held := parents[id]
			switch {
			case done[id] || held && parent == "":
				return true
			case !held:
				return false
			}
			id = parent
		}
		return false
	}
	var ready, rest []*Span
	for _, s := range t.Held {
		if !s.Stub && rooted(s.ID) || s.Stub && done[s.ID] {
			ready = append(ready, s)
		} else {
			rest = append(rest, s)
		}
	}
	if len(ready) > 0 {
		t.Session = t.session()
		d.release(t, ready, out, msg.Complete)
		t.Held = rest
	}
}

// age emits the spans of traces that have not grown for long, and the oldest where too many are held.
func (d *stream) age(out *decoder.Output) {
	held := 0
	for _, t := range d.Traces {
		held += len(t.Held)
	}
	for _, t := range d.Traces {
		if len(t.Held) > 0 && (held > maxHeld || d.Frames-t.Grown > maxAge || len(d.Traces) > maxTraces && t == d.Traces[0]) {
			held -= len(t.Held)
			d.force(t, out)
		}
	}
	if n := len(d.Traces) - maxTraces; n > 0 {
		for _, t := range d.Traces[:n] {
			d.force(t, out)
		}
		d.Traces = slices.Delete(d.Traces, 0, n)
	}
}

// force emits the spans that a trace holds, with rebuilt parents.
func (d *stream) force(t *trace, out *decoder.Output) {
	if len(t.Held) == 0 {
		return
	}
	t.Session = t.session()
	held := t.Held
	t.Held = nil
	d.release(t, held, out, msg.Complete)
}

func (d *stream) releaseAll(out *decoder.Output) {
	for _, t := range d.Traces {
		d.force(t, out)
	}
}

// tree finds the runs of spans.
type tree struct {
	trace  *trace
	nodes  map[string]*known
	logged map[string]string          // runs of missing parents, by log records
	turn   func(session string) *turn // see Profile.Rootless
}

func (t *tree) add(s *Span) *known {
	if k := t.nodes[s.ID]; k != nil { // log records of a span that was emitted
		if k.Stub && !s.Stub {
			k.Parent, k.Kind, k.Stub, k.Agent, k.Call, k.Tool = s.Parent, s.Kind, false, s.Agent, s.Call, s.Tool
		}
		return k
	}
	k := &known{
		ID: s.ID, Parent: s.Parent, Kind: s.Kind, Run: s.Run, Call: s.Call, Response: s.Response, Session: s.Session,
		Agent: s.Agent, AgentID: s.AgentID, Tool: s.Tool, Model: cmp.Or(s.Asked, s.Model), Stub: s.Stub,
	}
	t.nodes[s.ID] = k
	return k
}

// run returns the run of a span, that of the nearest agent at or above it. The root of the trace is one where
// no agent is, and a parent that is missing.
func (t *tree) run(k *known, depth int) string {
	if k.Run != "" || depth > maxDepth {
		return cmp.Or(k.Run, t.trace.ID+"/"+k.ID)
	}
	k.Run = t.trace.ID + "/" + k.ID // against a cycle
	if k.Kind == Agent {
		return k.Run
	}
	parent := t.nodes[k.Parent]
	switch {
	case parent != nil:
		k.Run, k.rebuilt = t.run(parent, depth+1), parent.rebuilt && parent.Kind != Agent
	case k.Parent != "" || k.Stub:
		k.rebuilt = true
		if k.Parent != "" {
			k.Run = t.trace.ID + "/" + k.Parent
		}
		k.Run = cmp.Or(t.logged[k.Parent], t.trace.Main, k.Run)
	case t.turn != nil && k.Kind != Other:
		session := t.sessionOf(k)
		if k.Run, k.rebuilt = "turn:"+session, true; t.turn(session) != nil {
			k.Run = cmp.Or(t.turn(session).Run, k.Run)
		}
	}
	return k.Run
}

// cause returns the run and the call above a run, by one of its spans.
func (t *tree) cause(k *known) (run, call string) {
	own := k.Run
	for range maxDepth {
		if k = t.nodes[k.Parent]; k == nil || k.Parent == k.ID {
			return run, ""
		}
		switch {
		case k.Run == own:
		case k.Kind == Tool:
			return k.Run, k.Call
		case k.Kind == Agent:
			return k.Run, ""
		case run != "" && k.Run != run:
			return run, ""
		case k.Kind != Other && k.AgentID != "": // of the sub-agent above
			run = k.Run
		}
	}
	return run, ""
}

// isOurs reports whether a span, or one above it, is of an agent.
func (t *tree) isOurs(k *known) bool {
	for range maxDepth {
		if k == nil {
			return false
		}
		if k.Kind != Other {
			return true
		}
		k = t.nodes[k.Parent]
	}
	return false
}

// sessionOf is the session of a span.
func (t *tree) sessionOf(k *known) string {
	for at := k; at != nil; {
		if at.Session != "" {
			return at.Session
		}
		parent := t.nodes[at.Parent]
		if at.Parent == "" || parent == at {
			break
		}
		if at = parent; at != nil && at.Session == "" && at.Parent == k.ID {
			break
		}
	}
	return cmp.Or(t.trace.session(), t.trace.ID)
}
