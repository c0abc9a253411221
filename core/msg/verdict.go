package msg

// Verdict is what was found of a piece of open work, a run, a call or a delegation: why
// nothing comes of it. It is reported when it is made, and again when it is resolved. Span,
// Name and Since identify it: a later version replaces the earlier one.
type Verdict struct {
	Tenant, Source, Format string

	TraceID TraceID
	Span    SpanID
	Kind    SpanKind
	Session string
	Run     string
	Agent   string // display name
	Tool    string // of a call

	Name     string // model_silent, tool_running, ...; see package verdict
	Since    int64  // Unix ns; when that state of the work began
	At       int64  // Unix ns; when the verdict was made
	Resolved int64  // Unix ns; zero while it holds
	// Resolution is why it does not hold any more: progress, ended, or the next verdict.
	Resolution string

	Evidence string // one sentence
	Path     string // from the top-level run down to the work, with ages
	Words    string // the last text that the run's model wrote; what agents write is no fact
	Cause    SpanID // the span below it that is the reason; zero: itself

	Ver uint64
}

// AlertOfChange is the Name of what is no verdict on work, but a change of an agent, a tool or a model; see package change.
const AlertOfChange = "change"

// EventVerdict is the event of a span of which a verdict was made; its time is that of Since.
// Its attributes are the verdict, the evidence, and for how long it held, in seconds.
const (
	EventVerdict    = "verdict"
	VerdictName     = "earshot.verdict"
	VerdictEvidence = "earshot.verdict.evidence"
	VerdictHeld     = "earshot.verdict.held_s"
)
