package assemble

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/anomaly"
	"github.com/earshot-dev/earshot/core/msg"
)

// Limits of what a group remembers of what is over. What is forgotten is decided
// by the order of messages alone, never by when an epoch ended, so that a replay
// forgets the same.
const (
	maxEndedRuns = 16   // besides those that wait for a call
	maxRuns      = 4096 // of any kind
	maxPlaces    = 256  // of runs whose story is forgotten
	maxDone      = 256  // ended delegations
	maxLinks     = 256  // links whose call has not been seen
	maxEarly     = 256  // results whose call has not been seen
	maxEvents    = 32   // of a span
	maxFound     = 32   // findings of a run
	maxPartial   = 1024 // incomplete messages
	maxChats     = 64   // starts of responses, of a run
	maxSeen      = 1024 // usage messages, of a run
	maxLeft      = 8    // traces that a run was in before
	maxCounted   = 64   // incomplete ones
	maxNames     = 256  // of agents
)

// group is a session. Its exported fields are its state.
type group struct {
	key     groupKey
	dirty   bool
	sealed  int       // which call of Seal gave it last
	touched time.Time // when a message of it was read last
	alive   int64     // Apply's, of the message at hand
	recent  recent
	shapes  *shapes
	again   bool // Settings.Again
	local   bool // Settings.LocalIDs
	endings []ending
	// While a message of a flush is applied: flushing, and what its run was before, if it
	// was not known.
	flushing bool
	fresh    *before
	foreseen *foreseen

	// Revision is the decoder's, of which the spans' versions are made: a run that ends
	// by rule after a restart has no message that tells it.
	Revision uint32            `json:"revision,omitempty"`
	Turns    map[uint64]string `json:"turns,omitempty"` // by stream: the top-level run that is going on, or was last
	Runs     map[string]*run   `json:"runs,omitempty"`
	Order    []string          `json:"order,omitempty"`  // of Runs, oldest first
	Places   int               `json:"places,omitempty"` // how many of Runs are Forgotten
	Open     map[string]*call  `json:"open,omitempty"`   // calls without a result
	// Done are ended delegations, by call: the run that made them and the run they
	// caused, for children that come late.
	Done      map[string]done `json:"done,omitempty"`
	DoneOrder []string        `json:"done_order,omitempty"`
	// Forgot says that there were more, and not only such as were inferred.
	Forgot bool `json:"forgot,omitempty"`
	// Links are facts about calls that nobody has made yet, oldest first: a file
	// beside a transcript may be read before both.
	Links []callLink `json:"links,omitempty"`
	// Early are results of calls that nobody has made yet, oldest first.
	Early []outcome `json:"early,omitempty"`
	// Partial has the times under which incomplete messages were given, because the
	// time is part of a row's place and the complete message may have another.
	Partial map[string]int64 `json:"partial,omitempty"`
	// Alive is when somebody was at work by a message that is of no run; Unix ns.
	Alive int64 `json:"alive,omitempty"`
	// Names are the display names of agents, by id: a form of the conversation may have
	// the ids alone.
	Names map[string]string `json:"names,omitempty"`
	// History is the stream that has given the session's messages without their runs,
	// because none was heard.
	History uint64 `json:"history,omitempty"`
	// Agent is the name of the agent whose session it is, as the session tells it, and
	// Aliases are the names that others have for it.
	Agent   string  `json:"agent,omitempty"`
	Aliases []alias `json:"aliases,omitempty"`
	// Kept are the runs that are provisional, Given the spans that were given of such.
	Kept  []string `json:"kept,omitempty"`
	Given []given  `json:"given,omitempty"`
	// Meeting is all that there is of a group that is no session.
	Meeting *meeting `json:"meeting,omitempty"`
	// Claims are the ids in use, of a format whose ids are local.
	Claims claims `json:"claims,omitzero"`
}

type done struct {
	Run   string `json:"run"`
	Root  string `json:"root"`
	Child string `json:"child,omitempty"`
	To    string `json:"to,omitempty"`

	Link       msg.LinkMethod `json:"link,omitempty"`
	Confidence uint8          `json:"confidence,omitempty"`

	// Told is the call as it ended, as long as something may yet say better what it
	// caused, a file beside the child's transcript that is read late, or that goes on
	// behind the caller's back.
	Told *told `json:"told,omitempty"`
}

// told is a call with its result.
type told struct {
	Call    call        `json:"call"`
	End     int64       `json:"end"`
	Result  uint32      `json:"result,omitempty"` // bytes
	Outcome msg.Outcome `json:"outcome"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`

	Tokens uint32         `json:"tokens,omitempty"` // see carry.go
	From   msg.Provenance `json:"from,omitempty"`
}

// forget drops the call when nothing can change it any more: its child is known for
// sure, and the caller has waited for it.
func (d *done) forget() {
	if d.Link >= msg.ByNativeID && !d.Told.Call.Async && !d.Told.Call.meets() {
		d.Told = nil
	}
}

// outcome is what came of a call.
type outcome struct {
	Call    string      `json:"call"`
	Time    int64       `json:"time"`
	Took    int64       `json:"took,omitempty"` // measured; ns
	Bytes   uint32      `json:"bytes,omitempty"`
	Hash    uint64      `json:"hash,omitempty"` // of the content
	Outcome msg.Outcome `json:"outcome"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`
}

type callLink struct {
	Call       string         `json:"call"`
	Child      string         `json:"child"`
	Link       msg.LinkMethod `json:"link,omitempty"`
	Confidence uint8          `json:"confidence,omitempty"`
}

// run is one invocation of an agent.
type run struct {
	ID         string         `json:"id"`
	Parent     string         `json:"parent,omitempty"` // run
	Call       string         `json:"call,omitempty"`   // of the parent that caused it
	Link       msg.LinkMethod `json:"link,omitempty"`
	Confidence uint8          `json:"confidence,omitempty"`
	Root       string         `json:"root"`           // the top-level run of its trace
	Was        string         `json:"was,omitempty"`  // the root under which its spans were given before a link
	Left       []string       `json:"left,omitempty"` // roots before that, whose spans may not all be taken back yet
	Prev       string         `json:"prev,omitempty"` // the turn before
	PrevRoot   string         `json:"prev_root,omitempty"`
	Linked     bool           `json:"linked,omitempty"`
	Above      *above         `json:"above,omitempty"`     // the call of another session that caused it
	Moved      int            `json:"moved,omitempty"`     // how often it came to be in another trace by that, or by another name
	Meets      bool           `json:"meets,omitempty"`     // it may have been caused by a call of another session, or made one that caused a run there
	Forgotten  bool           `json:"forgotten,omitempty"` // only its place is remembered

	Source   string      `json:"source,omitempty"`
	Agent    msg.Agent   `json:"agent,omitzero"`
	To       string      `json:"to,omitempty"`      // the name by which its call knows the agent, which may have none of its own
	Model    string      `json:"model,omitempty"`   // that answered first
	Asked    string      `json:"asked,omitempty"`   // the model that was asked for last
	Request  []msg.Attr  `json:"request,omitempty"` // the parameters of the last request
	Server   string      `json:"server,omitempty"`
	Unnamed  bool        `json:"unnamed,omitempty"` // see unnamed
	Provider string      `json:"provider,omitempty"`
	Usage    msg.Tokens  `json:"usage,omitzero"`
	Counted  []counted   `json:"counting,omitempty"`
	Seen     []uint64    `json:"seen,omitempty"` // the usage messages that were counted, sorted
	Outcome  msg.Outcome `json:"outcome,omitempty"`
	Error    string      `json:"error,omitempty"`
	Message  string      `json:"message,omitempty"`
	Finish   string      `json:"finish,omitempty"` // how it ended, in the protocol's words
	Stop     string      `json:"stop,omitempty"`   // why the model stopped in its last response

	Start int64 `json:"start"`
	// Inferred says that the protocol has said no time yet.
	Inferred bool            `json:"inferred,omitempty"`
	Last     int64           `json:"last"`
	Alive    int64           `json:"alive,omitempty"` // when its sender was at work last, by Earshot's clock; Unix ns
	End      int64           `json:"end,omitempty"`   // told by the protocol
	Input    int64           `json:"input,omitempty"` // when the model last got something to answer
	Ended    endedBy         `json:"ended,omitempty"`
	Sure     bool            `json:"sure,omitempty"`  // the protocol told it to its end, and in full
	Given    bool            `json:"given,omitempty"` // its span was given as ended, and nothing has changed since
	Shown    bool            `json:"shown,omitempty"` // it was given as open
	Chat     *chat           `json:"chat,omitempty"`
	Chats    []chatStart     `json:"chats,omitempty"` // for responses that are told again
	First    *chatStart      `json:"first,omitempty"` // the first token of a response that nothing else is heard of yet
	Events   []msg.SpanEvent `json:"events,omitempty"`
	Detect   anomaly.State    `json:"detect,omitzero"`
	// Delegating is how many of its delegations are at work.
	Delegating int             `json:"delegating,omitempty"`
	Found      []msg.SpanEvent `json:"found,omitempty"` // what the detectors found

	Begun *exchange `json:"begun,omitempty"` // the request that began it

	Responses int       `json:"responses,omitempty"` // that have begun
	Spent     spent     `json:"spent,omitzero"`      // of the last one whose usage is known
	Carried   []carried `json:"carried,omitempty"`

	Before *before `json:"before,omitempty"` // set while the run is provisional

	Stream  uint64 `json:"stream"`
	changed bool
}

// counted is usage that was added to the run and that a later version of its
// message may replace: the last one, and those that were not complete, because
// responses may come mixed.
type counted struct {
	Message  uint64     `json:"message,omitempty"`
	Tokens   msg.Tokens `json:"tokens,omitzero"`
	Complete bool       `json:"complete,omitempty"`
}

type chatStart struct {
	ID         string `json:"id"`
	Start      int64  `json:"start"`
	FirstToken int64  `json:"first_token,omitempty"`
	Nth        int    `json:"nth,omitempty"` // of the run's responses

	Asked   string     `json:"asked,omitempty"` // as chat has them
	Request []msg.Attr `json:"request,omitempty"`
	// Usage is what was told of it, for parts that come later.
	Usage msg.Tokens `json:"usage,omitzero"`
}

// endedBy says why a run is over; higher reasons stand against lower ones.
type endedBy uint8

const (
	running    endedBy = iota
	bySilence          // idle, or the end of its stream
	byTurn             // the next turn began
	byCall             // the delegation that caused it has its result
	byProtocol         // it said so
)

// chat is a model's response in the making.
type chat struct {
	ID         string     `json:"id"`
	Native     string     `json:"native,omitempty"` // as the protocol has it, if ID is not that
	Named      bool       `json:"named,omitempty"`  // ID is the protocol's
	Start      int64      `json:"start"`
	FirstToken int64      `json:"first_token,omitempty"`
	Last       int64      `json:"last"`
	Model      string     `json:"model,omitempty"` // that answered
	Asked      string     `json:"asked,omitempty"` // that was asked for
	Request    []msg.Attr `json:"request,omitempty"`
	Provider   string     `json:"provider,omitempty"`
	Finish     string     `json:"finish,omitempty"`
	Usage      msg.Tokens `json:"usage,omitzero"`
	Error      string     `json:"error,omitempty"`
	Nth        int        `json:"nth,omitempty"` // of the run's responses
}

// call is a tool call or a delegation without a result.
type call struct {
	ID         string          `json:"id"`
	Run        string          `json:"run"`
	Delegation bool            `json:"delegation,omitempty"`
	Tool       string          `json:"tool"`
	Server     string          `json:"server,omitempty"`
	Model      string          `json:"model,omitempty"` // that asked for it
	Internal   bool            `json:"internal,omitempty"`
	To         string          `json:"to,omitempty"`
	ToID       string          `json:"to_id,omitempty"`
	Child      string          `json:"child,omitempty"`
	Link       msg.LinkMethod  `json:"link,omitempty"`
	Confidence uint8           `json:"confidence,omitempty"`
	Async      bool            `json:"async,omitempty"`
	Named      bool            `json:"named,omitempty"` // the protocol names Child
	MeetID     string          `json:"meet_id,omitempty"`
	MeetPrompt string          `json:"meet_prompt,omitempty"`
	Start      int64           `json:"start"`
	Inferred   bool            `json:"inferred,omitempty"` // Start is not the protocol's
	Last       int64           `json:"last"`
	Alive      int64           `json:"alive,omitempty"` // as a run's
	Arguments  uint32          `json:"arguments,omitempty"`
	Hash       uint64          `json:"hash,omitempty"`     // of the arguments
	Shape      string          `json:"shape,omitempty"`    // of them, too
	Failures   int64           `json:"failures,omitempty"` // of its tool, running, before it
	Shown      bool            `json:"shown,omitempty"`
	Lost       bool            `json:"lost,omitempty"`  // nobody will bring its result, by rule
	Given      bool            `json:"given,omitempty"` // and it was given so
	ProtocolID string          `json:"protocol_id,omitempty"`
	Worked     int64           `json:"worked,omitempty"` // when the run that it caused ended
	Moved      int             `json:"moved,omitempty"`  // how often that became another run
	Events     []msg.SpanEvent `json:"events,omitempty"`

	changed bool
}

// pending reports whether a result of the call is still expected.
func (c *call) pending() bool { return !c.Lost && !c.Given }

func openGroup(key groupKey, state []byte) (*group, error) {
	g := &group{key: key}
	if len(state) > 0 {
		if err := json.Unmarshal(state, g); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	if key.format == "" { // a meeting, which has nothing else
		g.key = groupKey{strings.Clone(key.tenant), "", strings.Clone(key.session)}
		return g, nil
	}
	if g.Turns == nil {
		g.Turns = make(map[uint64]string)
	}
	if g.Runs == nil {
		g.Runs = make(map[string]*run)
	}
	if g.Open == nil {
		g.Open = make(map[string]*call)
	}
	if g.Partial == nil {
		g.Partial = make(map[string]int64)
	}
	if g.Done == nil {
		g.Done = make(map[string]done)
	}
	// The map's key outlives the message that named the session.
	g.key = groupKey{strings.Clone(key.tenant), strings.Clone(key.format), strings.Clone(key.session)}
	return g, nil
}

func parseKey(s string) (groupKey, error) {
	parts := strings.SplitN(s, "\x00", 3)
	if len(parts) != 3 {
		return groupKey{}, fmt.Errorf("assemble: group key %q", s)
	}
	return groupKey{parts[0], parts[1], parts[2]}, nil
}

func (g *group) encode() ([]byte, error) { return json.Marshal(g) }

// add adds a run, and forgets the oldest that is over.
func (g *group) add(out Emitter, r *run) {
	g.Runs[r.ID] = r
	g.Order = append(g.Order, r.ID)
	if g.flushing { // a replay forgets with the run's first message
		return
	}
	over := max(len(g.Order)-g.Places-maxEndedRuns, 0) + g.Places
	var waits map[string]bool
	kept := 0
	for i, id := range g.Order[:over] {
		old := g.Runs[id]
		if waits == nil && old.Ended > bySilence {
			waits = g.waiting(false)
		}
		if old.Ended > bySilence && !waits[id] || len(g.Order)-i > maxRuns {
			if !old.Given && old.Start != 0 {
				g.giveRun(out, old)
			}
			if !g.keepPlace(old) {
				delete(g.Runs, id)
				continue
			}
		}
		g.Order[kept] = id
		kept++
	}
	g.Order = slices.Delete(g.Order, kept, over)
}

// keepPlace forgets all of a run but its place, if another session, which is read later,
// may yet have more to say of it or of its calls, or if its stream is about to be decoded
// again. It reports whether there is room for that.
func (g *group) keepPlace(r *run) bool {
	switch {
	case r.Forgotten && g.Places > maxPlaces:
		g.Places--
		return false
	case r.Forgotten:
		return true
	case r.Start != 0 && !g.mayMove(r) || g.Places > maxPlaces:
		return false
	}
	p := r.place()
	p.End, p.Ended = r.until(), r.Ended
	p.Forgotten, p.Given = true, true
	g.Runs[r.ID] = p
	g.Places++
	return true
}

// mayMove reports whether the run, or one above it, has to do with other sessions.
func (g *group) mayMove(r *run) bool {
	for range maxRuns {
		if r == nil || r.Meets {
			break
		}
		r = g.Runs[r.Parent]
	}
	return r != nil && r.Meets
}

// waiting has the runs that wait for a call, or only for one that may yet be answered,
// and the runs above them.
func (g *group) waiting(pending bool) map[string]bool {
	waits := make(map[string]bool)
	for _, c := range g.Open {
		if pending && !c.pending() {
			continue
		}
		for id := c.Run; id != "" && !waits[id]; {
			waits[id] = true
			r := g.Runs[id]
			if r == nil {
				break
			}
			id = r.Parent
		}
	}
	return waits
}

// finished remembers a delegation that has its result.
func (g *group) finished(t *told) {
	c := &t.Call
	d := done{Run: c.Run, Root: c.Run, Child: c.Child, To: c.To, Link: c.Link, Confidence: c.Confidence, Told: t}
	d.forget()
	if r := g.Runs[c.Run]; r != nil {
		d.Root = r.Root
	}
	if _, ok := g.Done[c.ID]; !ok {
		g.DoneOrder = append(g.DoneOrder, c.ID)
	}
	g.Done[c.ID] = d
	if len(g.DoneOrder) > maxDone {
		oldest := g.DoneOrder[0]
		g.Forgot = g.Forgot || oldest != msg.InferredCall(g.Done[oldest].Child)
		delete(g.Done, oldest)
		g.DoneOrder = g.DoneOrder[1:]
	}
}

// open reports whether anything of the group is still running.
func (g *group) open() bool {
	for _, c := range g.Open {
		if c.pending() {
			return true
		}
	}
	for _, r := range g.Runs {
		if r.Ended == running {
			return true
		}
	}
	return false
}
