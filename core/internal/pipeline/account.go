package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// account is the core's state of a stream: its record in the checkpoint, and the state that
// ends with this process.
type account struct {
	stream        *stream
	record        checkpoint.Stream
	generation    int
	decoded       int64               // up to where its decoder has come
	others        map[string]struct{} // sessions beside the record's
	lastSession   string
	ofErased      bool        // its last message was of an erased session
	anchored      bool        // its anchor is durable
	stalled       bool        // its decoder cannot be opened
	touched       time.Time   // when frames were last decoded; see dateHistory
	written       int64       // when those frames were written, at the latest, if they are history; Unix ns
	flushing      bool        // a flush is under way
	decoderClosed bool        // its decoder is closed, or being closed
	ended         bool        // its decoder had emitted everything up to its position when the stream was opened
	search        search      // for the record that ends its decoder's process
	marks         []mark      // not reached yet
	response      *msg.Stream // the last row of a response; nil: there was none
}

func (a *account) resume() resume {
	return resume{a.record.SnapPos, a.record.Snapshot, a.record.Origin}
}

// flushed reports whether the decoder has emitted its open messages since its last frame.
func (a *account) flushed() bool { return a.record.FlushPos == a.record.Pos }

// replaying reports whether a frame that ends there was accounted for before a link had the
// stream decoded again.
func (a *account) replaying(end int64) bool {
	r := a.record.Replay
	return r != nil && end <= r.Until
}

func (a *account) runRef(session string) assemble.RunRef {
	return assemble.RunRef{Tenant: a.stream.feed.tenant, Format: a.stream.feed.format.name, Session: session}
}

// sessions are those of the stream's messages, as far as this process has read them.
func (a *account) sessions() (out []assemble.RunRef) {
	if a.record.Session != "" {
		out = append(out, a.runRef(a.record.Session))
	}
	for s := range a.others {
		out = append(out, a.runRef(s))
	}
	return out
}

// enqueue queues a command if nothing of the stream is under way and its lane has room.
func (a *account) enqueue(cmd command) (queued bool) {
	a.stream.at(a.record.Pos, func(t ticket) {
		*cmd.target() = t
		queued = a.stream.lane.tryPut(cmd)
	})
	return queued
}

// ledger is the row of the account.
func (a *account) ledger(now, since int64) msg.Ledger {
	r := &a.record
	read := readBytes(r)
	return msg.Ledger{
		Tenant: a.stream.feed.tenant, Source: r.Source, Format: a.stream.feed.format.name, Stream: r.Key, Origin: r.Origin,
		Read: read, Decoded: r.Decoded, Quarantined: r.Quarantined, Dropped: r.Dropped, Reason: r.Reason, DroppedAt: r.DroppedAt,
		Frames: r.Frames, Messages: r.Messages, Unknown: r.Unknown, Problems: r.Problems,
		Seen: now, Since: since, Ver: uint64(read),
	}
}

// accounting enters decoded frames into the accounts of their streams, and their messages,
// spans and dead letters into the commit batch.
type accounting struct {
	settings  *Settings
	assembler *assemble.Assembler
	commits   *committer
	progress  *progress
	metrics   *telemetry.Metrics
	spans     map[spanKind]*telemetry.Counter

	final, provisional intake
}

// intake is how messages enter the assembler: from frames and at the end of a stream they are
// final, from a flush in the midst of a stream provisional.
type intake struct {
	date  func(c *checkpoint.Clock, m *msg.Message, at, first int64) bool
	apply func(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (int64, error)
	// chains is set if later messages may name the responses of these.
	chains bool
}

type spanKind struct {
	format  string
	kind    msg.SpanKind
	outcome msg.Outcome
}

func (x *accounting) init(s *Settings, assembler *assemble.Assembler, commits *committer, progress *progress) {
	*x = accounting{
		settings: s, assembler: assembler, commits: commits, progress: progress, metrics: s.Metrics,
		spans: make(map[spanKind]*telemetry.Counter),
		final: intake{Date, assembler.Apply, true}, provisional: intake{infer, assembler.ApplyOpen, false},
	}
}

// frames counts a batch's frames, passes its messages on and adds dead letters for frames
// that could not be decoded. aliased reports whether the commit batch refers to the batch's
// buffer now.
//
// Frames before the record's position were accounted for before a restart: their messages
// are the same as then, and are dropped.
func (x *accounting) frames(a *account, d *decode, r *wire.Result) (aliased bool, err error) {
	rec, frames := &a.record, d.batch.Frames
	old := rec.Pos
	bad := make(map[int]bool, len(r.Problems))
	for i := range r.Problems {
		if at, ok := d.index(r.Problems[i].Frame); ok {
			bad[at] = true
		}
	}
	upto := len(frames)
	if r.Failure != nil {
		upto, _ = d.index(r.Failure.Frame) // the frames behind were not decoded
	}
	var letters []letter
	for i := range frames[:upto] {
		if f := &frames[i]; f.End > old {
			if stage := x.count(a, f, bad[i]); stage != "" {
				letters = append(letters, letter{i, stage, f.Reason, ""})
			}
			rec.Pos, rec.Read, a.ended = f.End, max(rec.Read, f.At), false
		}
	}
	for i := range r.Problems {
		pr := &r.Problems[i]
		if at, ok := d.index(pr.Frame); ok && frames[at].End > old && !a.replaying(frames[at].End) {
			letters = append(letters, letter{at, "decode", pr.Reason, pr.Detail})
		}
	}
	slices.SortStableFunc(letters, func(a, b letter) int { return a.frame - b.frame })
	upTo := func(frame int) { // a dead letter is of the session of the message before it
		for len(letters) > 0 && letters[0].frame < frame {
			l := letters[0]
			letters = letters[1:]
			x.deadLetter(a, &frames[l.frame], l.stage, l.reason, l.detail)
		}
	}
	last, nth, now, behind := int64(-1), 0, time.Now(), behindFrames(rec)
	for i := range r.Messages {
		m, f := &r.Messages[i], &behind
		if at, ok := d.index(m.Frame); ok {
			if f = &frames[at]; f.End <= old {
				continue
			}
			upTo(at)
		}
		if nth++; f.Pos != last {
			last, nth = f.Pos, 0
		}
		entered, err := x.message(a, m, f, nth, now, d.batch, x.final)
		if err != nil {
			return aliased, err
		}
		aliased = aliased || entered
	}
	upTo(len(frames))
	if rec.Pos > old {
		x.commits.touch(a)
		if rec.Replay != nil && rec.Pos >= rec.Replay.Until {
			rec.Replay = nil
		}
		x.applyMarks(a)
	}
	return aliased, nil
}

// unframed passes on the messages of a command without frames.
func (x *accounting) unframed(a *account, r *wire.Result, in intake) error {
	now, f := time.Now(), behindFrames(&a.record)
	for i := range r.Messages {
		if _, err := x.message(a, &r.Messages[i], &f, i, now, nil, in); err != nil {
			return err
		}
	}
	return nil
}

// behindFrames is the frame of a message that was decoded from no frame.
func behindFrames(r *checkpoint.Stream) frame.Frame {
	return frame.Frame{Pos: r.Pos, End: r.Pos + 1, At: r.Read}
}

// letter is a dead letter of a frame of a batch.
type letter struct {
	frame                 int
	stage, reason, detail string
}

// count accounts for a frame: law 1. It returns the stage of its dead letter; empty: it has none.
func (x *accounting) count(a *account, f *frame.Frame, bad bool) (stage string) {
	if a.replaying(f.End) {
		return ""
	}
	rec, n, feed := &a.record, f.End-f.Pos, a.stream.feed
	x.progress.bytes.Add(n)
	x.progress.frames.Add(1)
	rec.Frames++
	feed.format.advance()
	feed.counters.frames.Inc()
	switch {
	case f.Reason != "":
		if f.Dropped > 0 {
			rec.Dropped, rec.Reason, rec.DroppedAt = rec.Dropped+f.Dropped, strings.Clone(f.Reason), f.At
		}
		rec.Quarantined += n - f.Dropped
		x.metrics.Bytes.With(feed.source, "dropped").Add(f.Dropped)
		x.metrics.Bytes.With(feed.source, "quarantined").Add(n - f.Dropped)
		if stage = "read"; strings.HasPrefix(f.Reason, "decoder_") {
			stage = "decode"
		}
	case bad:
		rec.Quarantined += n
		x.metrics.Bytes.With(feed.source, "quarantined").Add(n)
	default:
		feed.format.inQuarantine = 0
		rec.Decoded += n
		feed.counters.decoded.Add(n)
	}
	return stage
}

// message dates the nth message of a frame, applies it and adds it to the commit batch. b is
// nil for a message of no frame.
func (x *accounting) message(a *account, m *msg.Message, f *frame.Frame, nth int, now time.Time, b *frame.Batch, in intake) (entered bool, err error) {
	rec, feed := &a.record, a.stream.feed
	if err := m.Validate(); err != nil {
		if !a.replaying(f.End) {
			x.deadLetter(a, f, "decode", msg.ReasonInvalid, err.Error())
		}
		return false, nil
	}
	format := feed.format.name
	if err := (assemble.Chains{Assembler: x.assembler}).Resolve(m, feed.tenant, format, feed.source); err != nil {
		return false, err
	}
	if x.settings.erases(feed.tenant, m.Session) {
		x.refuse(a)
		return false, nil
	}
	at := int64(0)
	if feed.journalled {
		at = f.At
	}
	bound(rec, m, f.At)
	if in.date(&rec.Clock, m, at, rec.Anchor) && !a.anchored {
		a.anchored = true
		x.commits.anchors = append(x.commits.anchors, a)
	}
	if a.replaying(f.End) && !slices.Contains(rec.Replay.Runs, m.Run) {
		return false, nil
	}
	pos := f.Pos + int64(nth)
	m.Host = msg.Host{
		Tenant: feed.tenant, Source: feed.source, Format: feed.format.name, Server: feed.server,
		Seq: uint64(pos), Ver: uint64(f.End), Observed: f.At, Origin: rec.Origin, Offset: f.Pos,
	}
	was, err := in.apply(m, a.stream.name, feed.format.info.Revision, now, Alive(m, f, b, now))
	if err != nil {
		return false, err
	}
	if in.chains {
		if err := (assemble.Chains{Assembler: x.assembler}).Remember(m, feed.tenant, format, feed.source, now); err != nil {
			return false, err
		}
	}
	a.identify(m)
	if was != 0 {
		gone := *m
		gone.Time, gone.Content, gone.Tool.Arguments, gone.Delegation.Task, gone.Host.Tombstone = was, msg.Text{}, msg.Text{}, msg.Text{}, true
		x.commits.addMessage(&gone)
	}
	x.commits.addMessage(m)
	if !a.replaying(f.End) {
		if m.Complete > msg.Partial { // how often a partial one is emitted depends on pauses
			rec.Messages++
		}
		x.progress.messages.Add(1)
		x.messages(feed, m.Kind).Inc()
		if m.Kind == msg.Unknown {
			rec.Unknown++
			x.metrics.Unknown.With(feed.format.name, m.Attr("type")).Inc()
		}
	}
	x.commits.touch(a)
	return true, nil
}

// identify notes the sessions of the stream's messages, and the first session, top-level run
// and response.
func (a *account) identify(m *msg.Message) {
	rec := &a.record
	a.ofErased = false
	if rec.Session == "" {
		rec.Session = strings.Clone(m.Session)
		delete(a.others, rec.Session)
	}
	if rec.Run == "" && m.Run != "" && m.ParentRun == "" && m.ParentCall == "" && m.Session == rec.Session {
		rec.Run = strings.Clone(m.Run)
	}
	switch {
	case m.ResponseID == "" || m.ResponseID == rec.Response:
	case rec.Response == "" && m.Session == rec.Session:
		rec.Response = strings.Clone(m.ResponseID)
	default:
		rec.Several = true
	}
	switch {
	case a.lastSession == m.Session:
	case m.Session == rec.Session:
		a.lastSession = rec.Session
	default:
		a.lastSession = strings.Clone(m.Session)
		if a.others == nil {
			a.others = make(map[string]struct{})
		}
		a.others[a.lastSession] = struct{}{}
	}
}

// maxSkew is by how much clocks are wrong: a time zone that is missing, not more. A
// transcript that is copied while Earshot listens is older.
const maxSkew = 24 * time.Hour

// Alive is when the sender of a message was at work, as far as Earshot can know, Unix ns. A
// record that was written while Earshot listened was written when it was read, however wrong
// the sender's clock is. A record that was there before, or was read as a whole document, is
// as old as its own time, and at least as old as the last change of its file.
func Alive(m *msg.Message, f *frame.Frame, b *frame.Batch, now time.Time) int64 {
	if b == nil { // no frame was read
		return min(m.Time, now.UnixNano())
	}
	if !b.Backlog && f.Kind != frame.Body && f.At-m.Time < int64(maxSkew) {
		return f.At
	}
	if b.Written != 0 {
		return min(m.Time, f.At, b.Written)
	}
	return min(m.Time, f.At)
}

// messages is the counter of the source's messages of a kind.
func (x *accounting) messages(f *Feed, k msg.Kind) *telemetry.Counter {
	n := f.counters.messages[k]
	if n == nil {
		n = x.metrics.Messages.With(f.source, f.format.name, k.String())
		f.counters.messages[k] = n
	}
	return n
}

// deadLetter keeps a frame that could not be decoded.
func (x *accounting) deadLetter(a *account, f *frame.Frame, stage, reason, detail string) {
	rec, feed := &a.record, a.stream.feed
	if a.ofErased {
		x.metrics.Erased.With(feed.source).Inc()
		return
	}
	rec.Problems++
	x.progress.problems.Add(1)
	x.metrics.Problems.With(feed.source, stage, reason).Inc()
	payload := f.Data
	if feed.second != nil { // before it is cut: a part of a secret is not found
		payload, detail = feed.second.Payload(payload), feed.second.String(detail)
	}
	payload = payload[:min(len(payload), x.settings.MaxDeadLetter)]
	x.commits.addDeadLetter(msg.DeadLetter{
		ID:     msg.NewDeadLetterID(feed.tenant, feed.source, stage, rec.Key, strconv.FormatInt(f.Pos, 10)),
		Tenant: feed.tenant, Source: feed.source, Format: feed.format.name, Session: a.lastSession,
		Stage: stage, Reason: strings.Clone(reason), Detail: strings.Clone(detail), Origin: rec.Origin, Offset: f.Pos,
		Payload: slices.Clone(payload), Bytes: int64(len(f.Data)) + f.Dropped, Seen: f.At, Ver: uint64(feed.format.info.Revision) + 1,
	})
}

// span adds a span of the assembler to the commit batch.
func (x *accounting) span(s *msg.Span) {
	if x.settings.erases(s.Tenant, s.Session) {
		return
	}
	x.commits.addSpan(s)
	if s.State == msg.SpanOpen || s.Tombstone || s.Amends {
		return
	}
	x.progress.spans.Add(1)
	key := spanKind{s.Format, s.Kind, s.Outcome}
	n := x.spans[key]
	if n == nil {
		n = x.metrics.Spans.With(s.Format, s.Kind.String(), s.Outcome.String())
		x.spans[key] = n
	}
	n.Inc()
}
