package msg

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Message is one normalized message: a prompt or an answer, a tool call or its
// result, a delegation or its result, or a status that the run reported.
//
// The first part is filled by the decoder, which sees only the protocol. Host is
// filled by the sidecar.
type Message struct {
	// Key names the message in its session: the protocol's own id where it has
	// one, else a hash of protocol facts, never a position. It is the
	// same in a replay and in every form of the conversation. A later message
	// with the same key replaces the earlier one if that was less complete.
	Key string
	// ParentKey is the key of the message this one answers, where the protocol
	// has it (parentUuid of Claude Code). Empty otherwise.
	ParentKey string

	Session string // the conversation; never empty
	Run     string // one invocation of one agent; empty when the format has no such thing
	// ParentRun is the run that caused Run, on at least the first message of a
	// child; UnknownRun on a child whose protocol does not name its parent.
	ParentRun string
	// ParentCall is the Tool.CallID of the call that caused Run, where it is
	// known, by the evidence of Delegation.Link and Confidence.
	ParentCall string

	Agent Agent
	// Client is the program that the run is in, and where it works: on at least the first
	// message of a run, as far as the protocol states it.
	Client Client
	// Title is the name of the conversation; a later one replaces it.
	Title string
	Kind  Kind
	Role  Role

	// Content is the text: of a prompt or an answer, a tool's result, an error's message,
	// the raw frame of an unknown message.
	Content     Text
	Attachments []Attachment

	Tool       Tool
	Delegation Delegate

	Model        string // as the protocol names it
	Provider     string // gen_ai.provider.name: anthropic, openai, ...
	ResponseID   string // the model response it belongs to; one chat span per ResponseID
	Usage        Tokens
	FinishReason string
	IsError      bool

	// Time is when it happened by the protocol: the start of a call, the
	// completion of an answer. Zero when the protocol has no time.
	Time      int64
	Precision Precision

	Complete Completeness
	Hidden   bool // a user interface would not show it: handshakes, internal tools, bookkeeping
	Signal   Signal
	Attrs    []Attr

	// Frame is the index, in the batch, of the frame that completed it.
	Frame int32

	Host Host
}

// UnknownRun is the ParentRun of a run that is known to be a child, and nothing
// more: a later Link joins it to its call.
const UnknownRun = "?"

// History is the attribute "type" of a message that a form of the conversation repeats
// without its run. Where the runs of the session are known, their messages have it too.
const History = "chat_history"

// InferredCall is the Tool.CallID of a delegation that is known only by the run that it
// caused: the form of the conversation has no calls. It is a placeholder for the call, which
// replaces it where another form has it.
func InferredCall(childRun string) string { return childRun + "/delegation" }

// Agent is an actor of the conversation. For the messages of a run it is who
// runs; for a user message that another agent wrote it is that agent.
type Agent struct {
	ID   string
	Name string
	Kind AgentKind
}

// Client is the program that an agent runs in, and where it works.
type Client struct {
	Project string // directory of the project, as the agent's machine writes it
	Branch  string // of its version control
	Version string // of the agent's program
	Host    string // the machine; the sidecar's where the protocol names none
	User    string // the account, where the protocol has one
}

// Clone copies the strings, which may be parts of a batch.
func (c Client) Clone() Client {
	return Client{
		Project: strings.Clone(c.Project), Branch: strings.Clone(c.Branch), Version: strings.Clone(c.Version),
		Host: strings.Clone(c.Host), User: strings.Clone(c.User),
	}
}

// Or returns c with the empty fields taken from other.
func (c Client) Or(other Client) Client {
	return Client{
		Project: cmp.Or(c.Project, other.Project), Branch: cmp.Or(c.Branch, other.Branch), Version: cmp.Or(c.Version, other.Version),
		Host: cmp.Or(c.Host, other.Host), User: cmp.Or(c.User, other.User),
	}
}

// Attachment describes bytes that are not kept in a row.
type Attachment struct {
	Name      string
	MediaType string
	Size      int64  // bytes, decoded
	SHA256    string // hex; empty when the bytes were not on the wire
	URL       string
}

// Tool describes the tool call that a message begins, ends or concerns.
type Tool struct {
	CallID    string // identifies the call in its session: the protocol's id, as a rule
	Name      string
	Arguments Text   // JSON where the protocol has JSON
	Server    string // MCP server, where the name or the protocol has it
	ErrorType string // a short class: timeout, denied, interrupted, tool_error, ...
	Internal  bool   // the framework's own machinery (think, analyze, delegation)
	// ProtocolID is the protocol's id of the call where CallID is another, because one form
	// of the conversation does not have the id or reuses it. UnknownID means that it may become
	// known later: a complete message of the call, or of its result, then has it.
	ProtocolID string
	// Duration is how long the call took as its framework measured it, or as far as its
	// delegate worked, in nanoseconds; on a result, and zero when only times are known. It
	// is finer than the times of a protocol that has whole seconds, and true where several
	// results are reported together.
	Duration int64
}

// UnknownID is the ProtocolID of a call that may have one.
const UnknownID = "?"

// ID is the id of the call that people see.
func (t *Tool) ID() string {
	if t.ProtocolID == "" || t.ProtocolID == UnknownID {
		return t.CallID
	}
	return t.ProtocolID
}

// Delegate describes work that is handed to another agent. On a delegation it names
// the delegate; on any message of the parent it may add the child's run; on messages
// of the child it has the evidence for ParentCall.
type Delegate struct {
	To         string // the delegate's display name where any is known, else as the caller wrote it
	ToID       string // its id, where To is a name
	Task       Text
	ChildRun   string
	Link       LinkMethod
	Confidence uint8 // percent; 0 when the method alone grades the link
	Async      bool  // the caller goes on; the result follows later
	// CorrelationID and CorrelationPrompt are names under which a call and the run that it
	// causes in another session, as a rule of another format, are linked: the same on a
	// message of the call and on one of the run, in any order. The first is of that pair
	// alone and makes a link by native id. The second names the prompt and its place, which
	// other calls and runs may share: a call then has one run of each agent whose message has
	// the name. On a message that begins a run, or that is of no call, they are the run's.
	// See the package sdk/spawn.
	CorrelationID     string
	CorrelationPrompt string
}

// Tokens are exclusive classes: their sum is the number of tokens processed. A protocol's
// inclusive totals (OpenAI's prompt_tokens contain the cached ones) are taken
// apart by the decoder.
type Tokens struct {
	Input      uint64
	Output     uint64
	CacheRead  uint64
	CacheWrite uint64
	Reasoning  uint64
	// CacheWrite1h is how many tokens of CacheWrite are kept for an hour, which costs more. It is no
	// class of its own.
	CacheWrite1h uint64 `json:",omitempty"`
	Provenance   Provenance
	// Tier is the tier of the service that the tokens are billed by, as the provider calls it: batch, flex, priority, fast;
	// us is where they are processed. Several are joined by + (batch+us). Empty is the standard tier. See Tier.
	Tier string `json:",omitempty"`
	// Stated is the cost that the protocol states for these tokens, in US dollars times 10^12; zero if it states none. See Dollars.
	Stated uint64 `json:",omitempty"`
}

// IsZero reports whether no class has a count.
func (t Tokens) IsZero() bool {
	return t.Input|t.Output|t.CacheRead|t.CacheWrite|t.Reasoning == 0
}

// Total is the sum of all classes.
func (t Tokens) Total() uint64 {
	return t.Input + t.Output + t.CacheRead + t.CacheWrite + t.Reasoning
}

// Add returns the sum by class with the weaker provenance of both.
func (t Tokens) Add(u Tokens) Tokens {
	first, tier := t.IsZero(), t.Tier
	t.Input += u.Input
	t.Output += u.Output
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Reasoning += u.Reasoning
	t.CacheWrite1h += u.CacheWrite1h
	if t.Tier = u.Tier; !first && tier != u.Tier { // no tier is that of both
		t.Tier = ""
	}
	t.Stated += u.Stated
	if t.Provenance == NoProvenance || u.Provenance != NoProvenance && u.Provenance < t.Provenance {
		t.Provenance = u.Provenance
	}
	return t
}

// Terms returns the tokens with the tier and the stated cost of others of the same response, where they have none.
func (t Tokens) Terms(u Tokens) Tokens {
	t.Tier = cmp.Or(t.Tier, u.Tier)
	t.Stated = cmp.Or(t.Stated, u.Stated)
	return t
}

// Tier joins the names that a response is billed by: the tier of the service, the speed, the place. A name of the terms of
// the list price has no tier.
func Tier(names ...string) string {
	out := ""
	for _, name := range names {
		lower := strings.ToLower(name)
		if plain, ok := strings.CutPrefix(lower, "service_tier_"); ok { // of Google's enum
			lower, name = plain, plain
		}
		switch lower {
		case "", "standard", "default", "normal", "auto", "on_demand", "unspecified", "traffic_type_unspecified", "global", "not_available":
			continue
		}
		if out != "" {
			out += "+"
		}
		out += name
	}
	return out
}

// Dollars returns US dollars, in decimal digits, as Tokens.Stated has them. A cost of zero is none: a subscription, a model without
// a price and a key of one's own are reported so.
func Dollars(digits string) uint64 {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f > 0 && f < 1e6) {
		return 0
	}
	return uint64(math.Round(f * 1e12))
}

// Attr is a further fact of the protocol, under its own name.
type Attr struct{ Key, Value string }

// Host is the part of a message that the sidecar adds.
type Host struct {
	Tenant string
	Source string
	Format string

	ID      ID
	Parent  ID // of ParentKey; zero when there is none
	TraceID TraceID
	SpanID  SpanID
	Chat    SpanID // the response that it is part of, which a tool call's SpanID does not name
	Server  string // host:port of the server that the source listens to; empty for files and pushes

	Seq       uint64 // order in the stream; breaks ties of Time
	Ver       uint64 // of two rows with the same ID the higher one is valid
	Observed  int64  // ns; when the frame was read. Left out of every comparison
	Tombstone bool   // removes a version that was stored under another time
	Origin    string // file path, URL
	Offset    int64  // where in Origin the frame begins
}

// AttrUnknownFields is the attribute, and the type of the message of kind unknown, that
// keeps the parts of a frame that a decoder does not know: a JSON object from paths to values.
const AttrUnknownFields = "unknown_fields"

// Attr returns the value of the first attribute with that key.
func (m *Message) Attr(key string) string {
	for _, a := range m.Attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// SetAttr appends the attribute unless its value is empty.
func (m *Message) SetAttr(key, value string) {
	if value != "" {
		m.Attrs = append(m.Attrs, Attr{key, value})
	}
}

// Validate reports the first rule of the decoder contract that m breaks.
func (m *Message) Validate() error {
	switch {
	case m.Key == "":
		return errors.New("message without key")
	case m.Session == "":
		return fmt.Errorf("message %q: no session", m.Key)
	case m.Time < 0:
		return fmt.Errorf("message %q: negative time %d", m.Key, m.Time)
	case (m.Kind == ToolCall || m.Kind == Delegation) && m.Tool.Name == "" && m.Complete == Complete:
		return fmt.Errorf("message %q: %s without a tool name", m.Key, m.Kind)
	case (m.Kind == ToolCall || m.Kind == Delegation || m.Kind == ToolResult || m.Kind == DelegationResult) && m.Tool.CallID == "":
		return fmt.Errorf("message %q: %s without a call id", m.Key, m.Kind)
	case m.Usage != (Tokens{}) && m.Kind != Usage:
		return fmt.Errorf("message %q: tokens on a message of kind %s: they belong on one usage message per response", m.Key, m.Kind)
	}
	if err := m.validEnums(); err != nil {
		return fmt.Errorf("message %q: %w", m.Key, err)
	}
	return nil
}

// Problem is a frame, or a part of one, that could not be decoded. Its bytes
// are kept in a dead letter.
type Problem struct {
	Reason string // a short code from a bounded set: invalid_json, invalid_utf8, wrong_type, too_long, ...
	Detail string // for a person; never the payload
	Frame  int32  // index in the batch; -1 when no frame is to blame
}

// The reasons that more than one package reports.
const (
	ReasonInvalidJSON    = "invalid_json"
	ReasonInvalidUTF8    = "invalid_utf8"
	ReasonWrongType      = "wrong_type"
	ReasonTooLong        = "too_long"
	ReasonInvalid        = "invalid_message" // a decoder broke its contract
	ReasonDecoderFailed  = "decoder_failed"  // it failed at the frame
	ReasonDecoderCrash   = "decoder_crash"   // its process died with the frame
	ReasonDecoderTimeout = "decoder_timeout" // it did not answer
	ReasonDecoderMemory  = "decoder_memory"  // it went over its memory limit
	ReasonDecoderInvalid = "decoder_invalid" // its answer broke the protocol
	ReasonRefusedByDB    = "refused_by_store"
	ReasonStreamLimits   = "limit"
	ReasonStateLost      = "state_lost"       // state of a decoder about input that is gone
	ReasonStoreBehind    = "missing_in_store" // rows that a store had accepted and does not have
	ReasonSpoolDamaged   = "spool_damaged"    // batches that an exporter had not taken
)
