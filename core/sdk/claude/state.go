// Package claude decodes the messages of Claude Code: the records of type assistant and user,
// which the transcript of a session (format claude-code) and the output of claude -p (format
// claude-stream) have in common, with the same ids. A format reads the envelope of a record,
// finds its lane, and passes it on; State has the responses, calls and results, and emits
// messages whose keys are the same in both formats.
//
// Invariants, each with a test of that name:
//
//   - One response is several records, one for each content block, and each repeats its usage
//     as it was then. Its tokens are emitted once, when the response has ended, with the
//     highest output, and the counts that came with it (TestUsageOnce).
//   - A user record is a prompt only when it is none of these: results of tools, injected text
//     (isMeta, isSynthetic), a summary of a compacted context, an echo of a local command, a
//     notice of background work, an interrupt, a message of another agent (TestPrompts).
//   - Keys are <message id>/text and /thinking, call:<tool_use id>, result:<tool_use id>,
//     usage:<message id>, and the uuid of the record for everything else (TestKeys).
//   - State is bounded: maxLanes conversations, conversation.MaxCalls open calls, maxRecent
//     responses that have ended, and ids of at most ident.Max bytes (TestStateIsBounded).
package claude

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of the state.
const (
	maxLanes  = 64  // conversations; the least recently used is evicted
	maxRecent = 32  // responses that have ended and may be repeated
	maxLines  = 256 // records of one response that are recognized when they are repeated
)

// Form is the part of a format that State does not know.
type Form interface {
	// Facts are the members that identify a record without a uuid.
	Facts() []string
	// Cause returns the id of a run that begins with the record without a prompt. answer is
	// set when the record is of the model.
	Cause(ln *Line, answer bool) string
	// Started completes the first message of a run.
	Started(ln *Line, m *msg.Message)
	// Finishing is called before the usage of the lane's response is emitted.
	Finishing(ln *Line, l *Lane)
	// Notice decodes a user record that is the notice of a background task.
	Notice(ln *Line, text jsonv.Value)
	// Interrupted decodes a user record that stops the agent.
	Interrupted(ln *Line, text jsonv.Value)
	// Launched is called for a delegation whose work goes on in the background.
	Launched(ln *Line, extra jsonv.Value, c *Call)
}

// State is a decoder's state, which its snapshot has as JSON.
type State struct {
	Session string                    `json:",omitempty"` // of the last record that named one
	Lanes   []*Lane                   `json:",omitempty"` // least recently used first
	Calls   conversation.Calls[*Call] `json:",omitzero"`
	Recent  []*Response               `json:",omitempty"` // responses that have ended, oldest first
}

// Lane is one conversation of a session: the main one, or that of a sub-agent.
type Lane struct {
	Session string
	Agent   string `json:",omitempty"` // id of a sub-agent
	Name    string `json:",omitempty"`
	conversation.Run
	Prompted bool      `json:",omitempty"` // the sub-agent has its task
	Response *Response `json:",omitempty"` // the open one

	// Of a transcript.
	Root   string `json:",omitempty"` // uuid of the first record of a sub-agent without an id
	From   string `json:",omitempty"` // the session of which this one is a fork
	Until  int64  `json:",omitempty"` // the time of the last record copied from it
	Joined bool   `json:",omitempty"` // its first run has begun
	Fired  bool   `json:",omitempty"` // a scheduled task is due, whose text is to come
	Copies bool   `json:",omitempty"` // its records so far are copies of those of the main conversation
	Tail   []Step `json:",omitempty"` // the last records, oldest first

	// Of a stream.
	Init   string                 `json:",omitempty"` // id of system/init, until the turn's first message
	Model  string                 `json:",omitempty"` // by system/init
	Dir    string                 `json:",omitempty"` // working directory, by system/init
	Client msg.Client             `json:",omitzero"`  // of the main conversation, by system/init
	Fork   string                 `json:",omitempty"` // the program that writes these records, where it is not Claude Code
	Text   *conversation.LastText `json:",omitempty"` // of the run
	Turn   conversation.Counts    `json:",omitzero"`  // of the run's responses that have ended
	Before conversation.Counts    `json:",omitzero"`  // of the runs before
	Spoke  conversation.Time      `json:",omitzero"`  // the time of the last response of a turn that awaits its result
}

// Step is a record that a later one may name as its parent.
type Step struct {
	UUID uint64
	Key  string `json:",omitempty"`
}

// Actor returns the agent of the lane.
func (l *Lane) Actor() msg.Agent {
	if l.Copies { // of whom the original says
		return msg.Agent{}
	}
	a := msg.Agent{ID: l.Agent, Name: l.Name, Kind: msg.KindAgent}
	if a.Name == "" && !l.Child {
		a.Name = cmp.Or(l.Fork, "claude-code")
	}
	return a
}

// SessionOf returns the session that a record names, or else the one before it, or the
// stream's own name.
func (s *State) SessionOf(v jsonv.Value, stream string) string {
	switch {
	case v.Is(jsonv.String) && v.Equal(s.Session) && s.Session != "":
	case v.Is(jsonv.String) && len(v.Peek()) > 2:
		s.Session = ident.Of(v)
	case s.Session != "":
	case stream != "":
		return stream
	default:
		return "unknown"
	}
	return s.Session
}

// Lane returns the most recently used lane that fits, or nil.
func (s *State) Lane(fits func(*Lane) bool) *Lane {
	for i := len(s.Lanes) - 1; i >= 0; i-- {
		l := s.Lanes[i]
		if !fits(l) {
			continue
		}
		if i < len(s.Lanes)-1 {
			s.Lanes = append(slices.Delete(s.Lanes, i, i+1), l)
		}
		return l
	}
	return nil
}

// AddLane adds a lane, and evicts one when there are too many: a sub-agent's first.
func (s *State) AddLane(ln *Line, l *Lane) {
	s.Lanes = append(s.Lanes, l)
	if len(s.Lanes) <= maxLanes {
		return
	}
	i := slices.IndexFunc(s.Lanes, func(l *Lane) bool { return l.Child })
	if i < 0 || s.Lanes[i] == l {
		i = 0
	}
	s.Finish(ln, s.Lanes[i])
	s.Lanes = slices.Delete(s.Lanes, i, i+1)
}

// Flush emits the usage of the open responses as partial.
func (s *State) Flush(out *decoder.Output) {
	for _, l := range s.Lanes {
		l.usage(out, msg.Partial)
	}
}
