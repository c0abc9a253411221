package blame

import "github.com/earshot-dev/earshot/core/msg"

// Kind is the kind of a span.
type Kind uint8

// The kinds. A workflow is a Run.
const (
	Run Kind = iota
	Chat
	Tool
	Delegation
)

func (k Kind) String() string { return [...]string{"run", "chat", "tool", "delegation"}[k] }

// Span is one operation of a trace. Times are Unix nanoseconds.
type Span struct {
	ID     string
	Parent string // empty for a root; a span whose parent is missing is an orphan, and a root
	Kind   Kind
	Name   string // of the tool, the model or the agent
	Agent  string // the agent that performed it
	To     string // the delegate of a delegation

	// Step is set for a run that is a step of a workflow: without children it is a
	// function, not an agent without records.
	Step bool

	Start, End int64
	FirstToken int64 // of a chat; zero when unknown
	// Open is set for a span without an end of its own: it is still running, or its
	// result never arrived. It lasts at least as long as its children.
	Open bool
	// Async is set when the caller did not wait: the delegation lasts as long as the
	// run that it started.
	Async bool

	Waits   []Interval // for a person; one without an end has To zero
	Retries []int64    // the times at which an attempt failed
}

// Interval is the time from From up to and without To.
type Interval = msg.Interval

// Bucket is a class of time; see the package comment.
type Bucket uint8

// The buckets.
const (
	ModelTTFT Bucket = iota
	ModelStream
	ToolTime
	SubAgent
	Wait
	Retry
	Idle
	buckets
)

var bucketNames = [buckets]string{"model_ttft", "model_stream", "tool", "sub_agent", "wait", "retry", "idle"}

func (b Bucket) String() string { return bucketNames[b] }

// Buckets are all of them, in order.
func Buckets() []Bucket {
	return []Bucket{ModelTTFT, ModelStream, ToolTime, SubAgent, Wait, Retry, Idle}
}

// Split is nanoseconds by bucket.
type Split [buckets]int64

// Total is the sum of all buckets.
func (s Split) Total() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// Millis returns the split in milliseconds that add up to total exactly, which is
// the wall time in milliseconds, rounded. The remainder of rounding down goes to the
// buckets that lost most, the first of equals.
func (s Split) Millis() (out Split, total int64) {
	const ms = 1_000_000
	total = (s.Total() + ms/2) / ms
	left := total
	for b, n := range s {
		out[b] = n / ms
		left -= out[b]
	}
	for ; left > 0; left-- {
		most := -1
		for b := range s {
			lost := s[b] - out[b]*ms
			if lost > 0 && (most < 0 || lost > s[most]-out[most]*ms) {
				most = b
			}
		}
		out[most]++
	}
	return out, total
}
