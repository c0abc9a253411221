package pipeline

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// mark is the listener's description of a response when it had recorded the stream up to a
// position.
type mark struct {
	pos  int64
	info source.ResponseInfo
}

// applyMarks applies the marks up to the position that is accounted for: the messages that
// they are about are applied then.
func (x *accounting) applyMarks(a *account) {
	for len(a.marks) > 0 && a.marks[0].pos <= a.record.Pos {
		m := a.marks[0]
		a.marks = a.marks[1:]
		x.setResponse(a, &m.info)
	}
}

// setResponse applies the description of a response: who asked for it, and, once it has ended, its
// timing.
func (x *accounting) setResponse(a *account, f *source.ResponseInfo) {
	rec := &a.record
	row := msg.Stream{
		Tenant: a.stream.feed.tenant, Source: rec.Source, Format: a.stream.feed.format.name, Stream: rec.Key, Origin: rec.Origin,
		Method: f.Method, Status: f.Status, Session: rec.Session, Run: rec.Run, Chat: x.chat(a), RemoteState: f.Tracestate,
	}
	row.RemoteTrace, row.RemoteSpan = f.Remote()
	if f.Timing != nil {
		row.Pace = *f.Timing
	}
	x.link(a, &row)
	if f.Timing == nil {
		return
	}
	if f.Failure != "" && rec.Run != "" && rec.Response == "" {
		x.fail(a, f)
	}
	row.Ver = uint64(max(row.Pace.End(), 0))
	if a.response == nil || a.response.Pace.Start != row.Pace.Start {
		x.observe(&row)
	}
	a.response = &row
	x.commits.addStream(row)
}

// updateResponse adds the row of a stream's last response again if only the stream's end
// has shown the run or the response.
func (x *accounting) updateResponse(a *account) {
	if a.response == nil || a.response.Ver == 0 {
		return
	}
	row := *a.response
	if row.Session == a.record.Session && row.Run == a.record.Run && row.Chat == x.chat(a) {
		return
	}
	row.Session, row.Run, row.Chat = a.record.Session, a.record.Run, x.chat(a)
	row.Ver++
	x.link(a, &row)
	x.commits.addStream(row)
}

// link has the assembler put the response on the span that it belongs to.
func (x *accounting) link(a *account, row *msg.Stream) {
	if err := x.assembler.SetResponse(a.stream.name, a.record.Anchor, row); err != nil {
		x.settings.Logger.Error("response has no span", "origin", row.Origin, "error", err)
	}
}

// fail adds to the run of a request that no response came to it, or none that a decoder reads.
func (x *accounting) fail(a *account, f *source.ResponseInfo) {
	m := msg.Message{
		Key: "failed:" + strconv.FormatUint(a.stream.name, 16), Session: strings.Clone(a.record.Session), Run: strings.Clone(a.record.Run),
		Kind: msg.Error, Role: msg.RoleAssistant, Agent: msg.Agent{Kind: msg.KindAgent}, Complete: msg.Complete,
		IsError: true, Tool: msg.Tool{ErrorType: f.Failure}, Content: msg.Plain(cmp.Or(f.Reason, f.Failure)), Signal: msg.Retry,
	}
	if f.Failure == source.FailureClosed { // who has gone does not try again
		m.Signal = msg.NoSignal
	}
	at := behindFrames(&a.record)
	at.At = f.Timing.End()
	if _, err := x.message(a, &m, &at, 0, time.Now(), nil, x.final); err != nil {
		x.settings.Logger.Error("a request that failed has no row", "origin", a.record.Origin, "error", err)
	}
}

// observe enters a response into the metrics.
func (x *accounting) observe(row *msg.Stream) {
	m, p := x.metrics, &row.Pace
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	m.Responses.With(row.Source, row.Format).Inc()
	if p.Buffered {
		m.Buffered.With(row.Source, row.Format).Inc()
	}
	if p.FirstByte > 0 {
		m.FirstByte.With(row.Source, row.Format).Observe(seconds(p.FirstByte))
	}
	if p.Events > 0 {
		m.FirstEvent.With(row.Source, row.Format).Observe(seconds(p.FirstEvent))
	}
	if p.Chunks > 1 {
		m.Gap.With(row.Source, row.Format).Observe(seconds(p.GapP95))
		m.Stall.With(row.Source, row.Format).Observe(seconds(p.LongestStall))
	}
}

// chat is the span of the model response that the stream is, if it is exactly one.
func (x *accounting) chat(a *account) msg.SpanID {
	rec := &a.record
	if rec.Response == "" || rec.Several {
		return msg.SpanID{}
	}
	id, err := x.assembler.Chat(a.runRef(rec.Session), rec.Response)
	if err != nil {
		x.settings.Logger.Error("response has no span", "origin", rec.Origin, "error", err)
	}
	return id
}
