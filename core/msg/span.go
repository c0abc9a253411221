package msg

// SpanKind is the kind of work of a span.
type SpanKind uint8

// The kinds of spans. A run is one invocation of an agent, a chat one response
// of a model, a tool one call, a delegation one call that hands work to another
// agent and has that agent's run below it.
const (
	SpanRun SpanKind = iota
	SpanChat
	SpanTool
	SpanDelegation
	SpanWorkflow
)

var spanKindNames = names{"run", "chat", "tool", "delegation", "workflow"}

func (k SpanKind) String() string { return spanKindNames.at(uint8(k)) }

// SpanState is how final a span is.
type SpanState uint8

// An Open span has begun and not ended. An Idle one was closed by rule: its run
// went silent, and its end is the time of its last event. A Closed one was ended
// by the protocol.
const (
	SpanOpen SpanState = iota
	SpanIdle
	SpanClosed
)

var spanStateNames = names{"open", "idle", "closed"}

func (s SpanState) String() string { return spanStateNames.at(uint8(s)) }

// Outcome is how the work of a span ended.
type Outcome uint8

// The outcomes. Unset is an open span, or one whose protocol has no outcome.
const (
	OutcomeUnset Outcome = iota
	OutcomeOK
	OutcomeError
	OutcomeCancelled
)

var outcomeNames = names{"unset", "ok", "error", "cancelled"}

func (o Outcome) String() string { return outcomeNames.at(uint8(o)) }

// Span is a piece of work with a beginning and an end, in OpenTelemetry's sense,
// before any naming convention is laid on it. Its JSON, which records of the assembler have,
// leaves out what is zero.
type Span struct {
	Tenant, Source, Format string `json:",omitzero"`

	TraceID TraceID   `json:",omitzero"`
	ID      SpanID    `json:",omitzero"`
	Parent  SpanID    `json:",omitzero"` // zero for the root
	Kind    SpanKind  `json:",omitzero"`
	State   SpanState `json:",omitzero"`

	Start, End int64  `json:",omitzero"` // Unix ns; End is zero while open
	Ver        uint64 `json:",omitzero"`
	// Tombstone removes a span that was stored under another trace before a late link moved
	// it, or with another start.
	Tombstone bool `json:",omitzero"`
	// Shown means that the span, which has ended now, was emitted as open before, or may
	// have been: its row in open_spans has to be removed.
	Shown bool `json:",omitzero"`

	Session   string `json:",omitzero"`
	Run       string `json:",omitzero"`
	ParentRun string `json:",omitzero"`
	Agent     Agent  `json:",omitzero"`
	// Client is the program of the run. Host is the sidecar's machine where the protocol
	// names none.
	Client Client `json:",omitzero"`

	// Model is the one that answered, AskedModel the one that was asked for; each is empty
	// where the protocol does not distinguish them.
	Model      string `json:",omitzero"`
	AskedModel string `json:",omitzero"`
	Provider   string `json:",omitzero"`
	ResponseID string `json:",omitzero"`
	// FinishReasons are why the model stopped; of a run, in the last response.
	FinishReasons []string `json:",omitzero"`
	// Ended is how the run ended, in the protocol's own words: completed, cancelled, ...
	Ended string `json:",omitzero"`
	// Request are the parameters of the request, where that was seen; see Params.
	Request []Attr `json:",omitzero"`
	// Server is host:port of the server that was listened to: on a top-level run, and on a
	// chat whose own request was seen.
	Server string `json:",omitzero"`
	// Unnamed means that Session is no id of the protocol: a file's name, a hash, the run's id.
	Unnamed    bool   `json:",omitzero"`
	Usage      Tokens `json:",omitzero"`
	FirstToken int64  `json:",omitzero"` // Unix ns of the first output; zero when unknown

	Tool          Tool   `json:",omitzero"` // Arguments are not kept here
	ArgumentBytes uint32 `json:",omitzero"`
	ArgumentShape string `json:",omitzero"` // names and types of the arguments: "command:string timeout:number"
	// Attempt is 1, and more for a call that was made after calls of its tool had failed
	// one after the other: the number of the try.
	Attempt     uint16 `json:",omitzero"`
	ResultBytes uint32 `json:",omitzero"`
	// ResultTokens is by how much the result of a call made every later request of its
	// run longer; unknown while ResultTokensFrom, the provenance of these counts, is
	// NoProvenance. Usage.Tier of a call is that of the first response that read the result.
	ResultTokens     uint32     `json:",omitzero"`
	ResultTokensFrom Provenance `json:",omitzero"`
	// Amends means that the span was emitted before, as it ended, and only its ResultTokens
	// are new: an exporter of times and outcomes skips it.
	Amends   bool     `json:",omitzero"`
	Delegate Delegate `json:",omitzero"` // of a delegation; Task is not kept here
	// Worked is when the run that a delegation caused ended, Unix ns, where that is not
	// End: later if the caller did not wait for it, earlier if the result was reported later.
	// Zero when it is not known. The caller's time goes to End.
	Worked int64 `json:",omitzero"`

	// Seen is which views of the conversation have the span; empty where there can be one only.
	Seen Seen `json:",omitzero"`

	Outcome       Outcome `json:",omitzero"`
	ErrorType     string  `json:",omitzero"`
	StatusMessage string  `json:",omitzero"`

	// Pace is that of the response in which the run was streamed; zero when its request was
	// not seen, or began another run.
	Pace Pace `json:",omitzero"`

	// Hop is how long a run waited that a call of another program caused, where both are read.
	Hop Hop `json:",omitzero"`

	Events []SpanEvent `json:",omitzero"`
	Links  []SpanLink  `json:",omitzero"`

	LastSeen int64 `json:",omitzero"` // Unix ns of the last event that belongs to it
	// Alive is when the last sign of life of the work arrived, by Earshot's clock where the
	// stream was read live: Unix ns. It is LastSeen unless the sender's clock is wrong.
	Alive int64 `json:",omitzero"`
}

// Hop is the time of a call that another program answered, in nanoseconds: from the call to the
// request on the wire, between the two programs, in the server, and from the answer on the wire to the
// result in the caller's own records. A part is zero when it is not known; where the transport is not, the
// server's time has it.
type Hop struct {
	Queue, Transport, Server, Return int64
	Crowded                          bool `json:",omitzero"` // too many were alike to know the call of each
}

// Seen is the provenance of a span that several formats show.
type Seen struct {
	By     []string // the formats, the one that the span is of first
	Tokens string   // the format whose counts they are; empty if only one has it
	Times  string   // the format whose start and end they are, if that is not the first
	// Outcome and FirstToken are the formats of these, and of the end that a run or a call has with its
	// outcome, if that is not the first.
	Outcome    string `json:",omitempty"`
	FirstToken string `json:",omitempty"`
	// Conflict has the counts of each format, input/output/cache read/cache write, if they differ.
	Conflict string
	// Messages are those of the span that several formats have, by their ids.
	Messages []SeenMessage `json:",omitempty"`
}

// SeenMessage is the provenance of a message that several formats have.
type SeenMessage struct {
	ID ID
	By []string // the formats, the one whose words the row has first
}

// SpanEvent is something that happened within a span.
type SpanEvent struct {
	Time  int64
	Name  string
	Attrs []Attr
}

// EventFinding is the event of a run in which something was found: a loop, a storm
// of errors, a silence. Its attributes are the kind, the tool and the count.
const (
	EventFinding = "finding"
	FindingKind  = "earshot.finding.kind"
	FindingTool  = "earshot.finding.tool"
	FindingCount = "earshot.finding.count"
)

// SpanLink points to a span of another trace.
type SpanLink struct {
	TraceID TraceID
	SpanID  SpanID
	State   string // W3C tracestate
	Attrs   []Attr
}
