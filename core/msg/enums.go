package msg

import (
	"fmt"
	"strings"
)

// Kind is the kind of a message. The zero value is Unknown: input that no decoder
// understood, kept raw.
type Kind uint8

// The kinds. Their names are the values of the column kind.
const (
	Unknown Kind = iota
	User
	Assistant
	Reasoning
	ToolCall
	ToolResult
	Delegation
	DelegationResult
	Plan
	Task
	Status
	File
	Usage
	System
	Error
	Stop
)

var kindNames = names{
	"unknown", "user", "assistant", "reasoning", "tool_call", "tool_result", "delegation", "delegation_result",
	"plan", "task", "status", "file", "usage", "system", "error", "stop",
}

// Role is who speaks in the protocol's own terms. It is not always who spoke: a
// relay may put an agent's words into a user message (see Agent.Kind).
type Role uint8

// The roles.
const (
	NoRole Role = iota
	RoleUser
	RoleAssistant
	RoleTool
	RoleSystem
)

var roleNames = names{"", "user", "assistant", "tool", "system"}

// AgentKind is the kind of actor that an Agent is.
type AgentKind uint8

// The sorts of actors.
const (
	NoAgentKind AgentKind = iota
	KindAgent
	KindTeam
	KindWorkflow
	KindHuman
)

var agentKindNames = names{"", "agent", "team", "workflow", "human"}

// Precision is the precision of a time in the protocol.
type Precision uint8

// The precisions. Inferred marks a time that is not the protocol's: the host took the
// stream's last time, on a stream that is read live plus the time since then, or the time at
// which its first frame was read.
const (
	Inferred Precision = iota
	Seconds
	Millis
	Micros
	Nanos
)

var precisionNames = names{"inferred", "s", "ms", "us", "ns"}

// Completeness orders the versions of one message: of two with the same key the
// more complete one replaces the other.
type Completeness uint8

// A Partial message is still open or was cut off. A Summary is complete but was
// rebuilt from a form that drops detail (a reload without events, a snapshot).
// Complete is everything that the protocol has.
const (
	Partial Completeness = iota
	Summary
	Complete
)

var completenessNames = names{"partial", "summary", "complete"}

// Signal is an event for the span assembler, beside the kind of the message.
type Signal uint8

// The signals. Each concerns the message's run; the Wait and Retry signals
// concern its tool call when Tool.CallID is set. RunPause and WaitStart are waits for
// a person unless the attribute AttrWaitsFor names something else.
const (
	NoSignal   Signal = iota
	RunStart          // the run begins at Time
	RunEnd            // the run ends at Time; with the outcome of IsError and FinishReason
	RunPause          // the run waits for a human or for an outside result
	RunResume         // it goes on
	ModelStart        // a request to the model leaves at Time
	ModelEnd          // its response is complete at Time
	FirstToken        // its first token arrived at Time
	WaitStart         // a tool call waits for permission
	WaitEnd           // permission was granted or refused
	Retry             // a request failed and is tried again
	Link              // only carries Delegation.ChildRun or ParentCall
	Compaction        // the context was summarized
)

var signalNames = names{
	"", "run_start", "run_end", "run_pause", "run_resume", "model_start", "model_end", "first_token",
	"wait_start", "wait_end", "retry", "link", "compaction",
}

// LinkMethod is the evidence by which a child run was linked to a delegation.
type LinkMethod uint8

// The methods, strongest last; Confidence of Delegation grades them further.
const (
	NoLink     LinkMethod = iota
	ByPrompt              // the child's first prompt is the task's text, close in time
	ByOrder               // children and calls paired by order alone
	ByParent              // the child names its parent run, not the call
	ByTrace               // a traceparent was passed
	ByFork                // a forked session names its origin
	ByMetaFile            // a file beside the child's transcript names the call
	ByNativeID            // the protocol names the call or the child itself
)

var linkNames = names{"", "prompt", "order", "parent_run", "traceparent", "fork_id", "meta_file", "native_id"}

// Provenance is the origin of token counts.
type Provenance uint8

// The provenances. Of two counts of one response the stronger one is kept.
const (
	NoProvenance      Provenance = iota
	Estimated                    // computed, not by the provider
	TranscriptPartial            // the last snapshot that a transcript kept, perhaps before the end
	TranscriptFinal              // the transcript's final value
	Provider                     // the provider's own final usage
)

var provenanceNames = names{"", "estimated", "transcript_partial", "transcript_final", "provider"}

func (k Kind) String() string         { return kindNames.at(uint8(k)) }
func (r Role) String() string         { return roleNames.at(uint8(r)) }
func (k AgentKind) String() string    { return agentKindNames.at(uint8(k)) }
func (p Precision) String() string    { return precisionNames.at(uint8(p)) }
func (c Completeness) String() string { return completenessNames.at(uint8(c)) }
func (s Signal) String() string       { return signalNames.at(uint8(s)) }
func (l LinkMethod) String() string   { return linkNames.at(uint8(l)) }
func (p Provenance) String() string   { return provenanceNames.at(uint8(p)) }

// ParseKind returns the kind with that name.
func ParseKind(s string) (Kind, error) { i, err := kindNames.find("kind", s); return Kind(i), err }

// ParseRole returns the role with that name; the names of providers are
// understood too (developer is system, function is tool).
func ParseRole(s string) (Role, error) {
	switch s {
	case "developer":
		return RoleSystem, nil
	case "function":
		return RoleTool, nil
	}
	i, err := roleNames.find("role", s)
	return Role(i), err
}

type names []string

func (n names) at(i uint8) string {
	if int(i) < len(n) {
		return n[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func (n names) find(what, s string) (uint8, error) {
	for i, name := range n {
		if name == s {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q: not one of %s", what, s, strings.TrimPrefix(strings.Join(n, " "), " "))
}

// Valid reports whether every enumerated field of m is one this version knows;
// a decoder of a newer protocol may send others.
func (m *Message) validEnums() error {
	for _, f := range [...]struct {
		what string
		v    uint8
		n    names
	}{
		{"kind", uint8(m.Kind), kindNames},
		{"role", uint8(m.Role), roleNames},
		{"agent kind", uint8(m.Agent.Kind), agentKindNames},
		{"precision", uint8(m.Precision), precisionNames},
		{"completeness", uint8(m.Complete), completenessNames},
		{"signal", uint8(m.Signal), signalNames},
		{"link method", uint8(m.Delegation.Link), linkNames},
		{"provenance", uint8(m.Usage.Provenance), provenanceNames},
	} {
		if int(f.v) >= len(f.n) {
			return fmt.Errorf("%s %d: out of range", f.what, f.v)
		}
	}
	return nil
}
