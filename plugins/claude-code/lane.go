package claudecode

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxLanes = 64 // conversations of one file that are remembered; the least recently used is given up
	maxTail  = 32 // lines of a lane that a later line can name as its parent
)

// lane is one conversation of a file: the main one, or that of a sub-agent. Its
// exported fields are its state.
type lane struct {
	Session string
	Agent   string `json:",omitempty"` // id of a sub-agent
	Root    string `json:",omitempty"` // uuid of the first line of a sub-agent without an id
	Name    string `json:",omitempty"`
	From    string `json:",omitempty"` // the session of which this one is a fork

	Run        string         `json:",omitempty"`
	ParentRun  string         `json:",omitempty"`
	ParentCall string         `json:",omitempty"`
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`

	Begun    bool      `json:",omitempty"` // a message of Run was given
	Told     bool      `json:",omitempty"` // and one with its parent
	Prompted bool      `json:",omitempty"` // the sub-agent has its task
	Ended    bool      `json:",omitempty"` // Run is over
	Failed   bool      `json:",omitempty"` // the last thing heard of the model is an error
	Stop     string    `json:",omitempty"` // why the last response stopped
	Response *response `json:",omitempty"` // the one that goes on
	Tail     []step    `json:",omitempty"` // oldest first
}

// step is a line that a later one may follow.
type step struct {
	UUID uint64
	Key  string `json:",omitempty"`
}

func (l *lane) child() bool { return l.Agent != "" || l.Root != "" }

func (l *lane) agent() msg.Agent {
	a := msg.Agent{ID: l.Agent, Name: l.Name, Kind: msg.KindAgent}
	if a.Name == "" && !l.child() {
		a.Name = "claude-code"
	}
	return a
}

// laneOf finds the lane of a line, or begins it.
func (d *transcript) laneOf(ln *line, parent jsonv.Value) *lane {
	side := ln.root.Get("isSidechain").Bool()
	agent := d.file.agent
	if id := ln.root.Get("agentId"); id.Is(jsonv.String) && (side || agent != "") && !id.Equal(agent) {
		agent = ident(id)
	}
	inline := side && agent == ""
	for i := len(d.lanes) - 1; i >= 0; i-- {
		l := d.lanes[i]
		if l.Session != ln.session || l.Agent != agent || inline != (l.Root != "") {
			continue
		}
		if inline {
			if _, ok := l.follows(parent); !ok {
				continue
			}
		}
		if i < len(d.lanes)-1 {
			d.lanes = append(slices.Delete(d.lanes, i, i+1), l)
		}
		if l.Name == "" {
			l.name(ln.root)
		}
		return l
	}
	l := &lane{Session: ln.session, Agent: agent, Name: label(agent), Tail: make([]step, 0, maxTail)}
	l.name(ln.root)
	switch {
	case agent != "":
		l.Run = agent
		if d.file.workflow != "" {
			l.ParentRun, l.Link = d.file.workflow, msg.ByParent
		}
		d.bind(l, d.callOfChild(agent))
	case inline:
		l.Root = ln.id()
		l.Run = l.Root
	}
	d.keep(ln, l)
	return l
}

// keep adds a lane, and gives one up when there are too many.
func (d *transcript) keep(ln *line, l *lane) {
	d.lanes = append(d.lanes, l)
	if len(d.lanes) <= maxLanes {
		return
	}
	i := slices.IndexFunc(d.lanes, (*lane).child)
	if i < 0 || d.lanes[i] == l {
		i = 0
	}
	d.finish(ln, d.lanes[i])
	d.lanes = slices.Delete(d.lanes, i, i+1)
}

// name takes the agent's name from a line that has it.
func (l *lane) name(root jsonv.Value) {
	for _, field := range [...]string{"agentName", "attributionAgent"} {
		if v := root.Get(field); v.Is(jsonv.String) {
			l.Name = ident(v)
			return
		}
	}
}

// forked notes that a session is a fork of another.
func (d *transcript) forked(ln *line, session, from string) {
	if session == "" {
		return
	}
	for _, l := range d.lanes {
		if l.Session == session && !l.child() {
			l.From = from
			return
		}
	}
	d.keep(ln, &lane{Session: session, From: from})
}

// follows reports whether a line with that parent follows one of the lane, and
// returns the key of what it follows.
func (l *lane) follows(parent jsonv.Value) (key string, ok bool) {
	if !parent.Is(jsonv.String) {
		return "", false
	}
	h := hash(parent.Peek())
	for i := len(l.Tail) - 1; i >= 0; i-- {
		if l.Tail[i].UUID == h {
			return l.Tail[i].Key, true
		}
	}
	return "", false
}

func (l *lane) follow(uuid jsonv.Value, key string) {
	if len(l.Tail) == maxTail {
		l.Tail = slices.Delete(l.Tail, 0, 1)
	}
	l.Tail = append(l.Tail, step{hash(uuid.Peek()), key})
}

// begin begins a run of the main conversation, whose id is that of the line that
// the agent answers. A sub-agent goes on with the run it has.
func (d *transcript) begin(ln *line, id string) {
	l := ln.lane
	l.Ended = false
	if !l.child() {
		d.finish(ln, l)
		for _, o := range d.lanes {
			if o.Session != l.Session { // of the history with which a fork began
				d.finish(ln, o)
			}
		}
		l.Run, l.Begun, l.Failed, l.Stop = id, false, false, ""
	}
	ln.run = l.Run
}

// wake begins a run with the line if none goes on.
func (d *transcript) wake(ln *line) {
	if ln.run == "" {
		d.begin(ln, ln.id())
	}
}

// introduce completes the first message of a run with what is said of the run.
func (l *lane) introduce(m *msg.Message, root jsonv.Value) {
	if !l.Begun {
		l.Begun = true
		m.Signal = msg.RunStart
		for _, field := range [...]string{"cwd", "gitBranch", "version", "entrypoint", "permissionMode", "teamName"} {
			if v := root.Get(field); v.Is(jsonv.String) {
				m.SetAttr(field, v.Str())
			}
		}
		if v := root.Get("session_id"); v.Is(jsonv.String) && !v.Equal(l.Session) {
			m.SetAttr("resumed_from", v.Str())
		}
		m.SetAttr("forked_from", l.From)
		if l.child() {
			m.SetAttr("sidechain", "true")
			if l.ParentRun == "" {
				m.ParentRun = msg.UnknownRun
			}
		}
	}
	if l.ParentRun != "" && !l.Told {
		l.Told = true
		m.ParentRun, m.ParentCall = l.ParentRun, l.ParentCall
		m.Delegation.Link, m.Delegation.Confidence = l.Link, l.Confidence
	}
}
