package claudestream

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxLanes is how many conversations are remembered; the least recently used is
// given up.
const maxLanes = 64

// stateVersion rises when the state's form changes.
const stateVersion = 1

// state is what the decoder knows of the stream so far.
type state struct {
	Session string  `json:",omitempty"` // of the last line that named one
	Lanes   []*lane `json:",omitempty"` // least recently used first
	Calls   []*call `json:",omitempty"` // open ones, oldest first
	Asked   []asked `json:",omitempty"` // requests that wait for an answer, oldest first
}

// lane is one conversation of a session: the main one, or that of a sub-agent.
type lane struct {
	Session string
	Call    string `json:",omitempty"` // that caused the sub-agent

	Run       string      `json:",omitempty"` // that goes on
	Last      string      `json:",omitempty"` // the run that was introduced last
	ParentRun string      `json:",omitempty"`
	Name      string      `json:",omitempty"`
	Init      string      `json:",omitempty"` // id of system/init, of a turn that has not said anything
	Model     string      `json:",omitempty"` // by system/init
	Dir       string      `json:",omitempty"` // where it works, by system/init
	Failed    bool        `json:",omitempty"` // the last thing heard of the model is an error
	Stop      string      `json:",omitempty"` // why the last response stopped
	Said      uint64      `json:",omitempty"` // hash of the last text
	Response  *response   `json:",omitempty"` // the one that goes on
	Recent    []*response `json:",omitempty"` // those that are over, oldest first
	Turn      counts      `json:",omitzero"`  // of the run's responses that are over
	Before    counts      `json:",omitzero"`  // of the runs before
}

func (l *lane) child() bool { return l.Call != "" }

func (l *lane) agent() msg.Agent {
	if l.child() {
		return msg.Agent{ID: l.Run, Name: l.Name, Kind: msg.KindAgent}
	}
	return msg.Agent{Name: "claude-code", Kind: msg.KindAgent}
}

// laneOf finds the lane of a line, or begins it.
func (d *stream) laneOf(ln *line, call string) *lane {
	session := d.session()
	for i := len(d.Lanes) - 1; i >= 0; i-- {
		if l := d.Lanes[i]; l.Session == session && l.Call == call {
			if i < len(d.Lanes)-1 {
				d.Lanes = append(slices.Delete(d.Lanes, i, i+1), l)
			}
			return l
		}
	}
	l := &lane{Session: session, Call: call}
	if l.child() {
		l.Run, l.ParentRun = "agent:"+call, msg.UnknownRun
		if c := d.find(call); c != nil {
			l.ParentRun, l.Name = c.Run, c.To
			if c.Child != "" {
				l.Run = c.Child
			} else {
				c.Child = l.Run
			}
		}
	}
	if len(d.Lanes) == maxLanes {
		d.finish(ln, d.Lanes[0])
		d.Lanes = slices.Delete(d.Lanes, 0, 1)
	}
	d.Lanes = append(d.Lanes, l)
	return l
}

// begin begins a run of the main conversation. A sub-agent goes on with the run it
// has.
func (d *stream) begin(ln *line, id string) {
	l := ln.lane
	if l.child() {
		return
	}
	d.finish(ln, l)
	l.Run, l.Init, l.Failed, l.Stop, l.Said = id, "", false, "", 0
}

// wake begins a run with the line if none goes on.
func (d *stream) wake(ln *line) {
	l := ln.lane
	switch {
	case l.Run != "":
	case l.Init != "":
		d.begin(ln, l.Init)
	default:
		d.begin(ln, ln.id())
	}
}

// introduce completes the first message of a run with what is said of the run.
func (l *lane) introduce(m *msg.Message) {
	if l.Last == l.Run {
		return
	}
	l.Last = l.Run
	m.Signal = msg.RunStart
	if l.child() {
		m.ParentRun, m.ParentCall = l.ParentRun, l.Call
		m.Delegation.Link = msg.ByNativeID
	}
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
		return nil, fmt.Errorf("claude-stream: snapshot: %w", err)
	}
	return b, nil
}

// Restore takes up where Snapshot was taken.
func (d *stream) Restore(b []byte) error {
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("claude-stream: snapshot: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("claude-stream: snapshot of version %d, want %d", s.Version, stateVersion)
	}
	d.state = s.state
	return nil
}
