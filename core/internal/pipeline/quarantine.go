package pipeline

import (
	"maps"
	"slices"

	"github.com/earshot-dev/earshot/core/frame"
)

// A process that ends takes with it the frames that it was decoding, and one of them may be
// the poison record that ended it. To find that record without quarantining another:
//
//   - Each crash makes the frames that were sent and not answered suspects, as a range of
//     their stream; of a process that does not answer, those of its first request. A range
//     that is decoded after all is cleared.
//   - A stream whose range is suspect twice has the range decoded frame by frame, each frame
//     alone in the whole process.
//   - A frame with which alone the process crashed twice is quarantined: its position is
//     kept in the checkpoint, so that no later process gets it. A signal from outside
//     (kill -9, the kernel short of memory) proves less: then three times.
//
// To open a decoder and to flush it are treated like frames: a snapshot that ends the process
// is dropped, and the stream decoded from its beginning; a decoder that crashes when it is
// flushed is not flushed any more.
//
// A decoder that crashes with any input is not the records' fault: one that crashes when it
// is opened without a snapshot, or at record after record, has no more records quarantined.
// It makes no progress, so that its circuit opens.

// step is the kind of work that a process did when it ended.
type step uint8

const (
	atFrames step = iota
	atOpen
	atFlush
)

// attempt is a process's work on one stream: positions of frames, and the one behind them for
// a command without frames.
type attempt struct {
	stream     *stream
	generation int
	step       step
	from, to   int64
	alone      bool
}

// search is the search for the poison record of a stream.
type search struct {
	from, to int64 // positions that the record is between
	crashes  int   // with the range
	step     step  // that was executed alone last, when the process crashed
	at       int64 // and its position
	alone    int   // crashes with it
}

// isolateAfter is how many crashes with a range have its frames decoded alone; provenAfter
// is how many crashes with a frame alone prove that it is poison.
const (
	isolateAfter      = 2
	provenAfter       = 2
	provenAfterKilled = 3
)

// crashed returns the search after a crash in an attempt, and whether the attempt is proven
// to be the cause.
func (x search) crashed(v attempt, killed bool) (search, bool) {
	switch {
	case v.alone:
		if x.at != v.from || x.step != v.step {
			x.at, x.step, x.alone = v.from, v.step, 0
		}
		x.alone++
		return x, x.alone >= provenAfterKilled || !killed && x.alone >= provenAfter
	case x.crashes > 0 && v.from < x.to && x.from < v.to:
		x.from, x.to = max(x.from, v.from), min(x.to, v.to)
		x.crashes++
	default:
		x = search{from: v.from, to: v.to, crashes: 1}
	}
	return x, false
}

// found returns the search behind an attempt whose cause is withheld from now on.
func (x search) found(v attempt) search {
	x.alone = 0
	if v.step == atFrames {
		x.from = v.to
	}
	return x
}

// joined makes one attempt of those in the same stream.
func joined(attempts []attempt) []attempt {
	var out []attempt
	for _, v := range attempts {
		i := slices.IndexFunc(out, func(o attempt) bool { return o.stream == v.stream && o.generation == v.generation })
		if i < 0 {
			out = append(out, v)
			continue
		}
		out[i].from, out[i].to = min(out[i].from, v.from), max(out[i].to, v.to)
	}
	return out
}

// quarantine names the frames that a stream's lane withholds from the decoder.
type quarantine struct {
	records map[int64]string // reasons, by position; it is replaced, never changed
	stream  string           // the reason, when no frame is for the decoder any more
	noFlush bool             // the decoder is not flushed
	search  search           // a copy of the account's
}

// mark sets the reason of frames that are not for the decoder.
func (q *quarantine) mark(frames []frame.Frame) {
	for i := range frames {
		f := &frames[i]
		if reason, ok := q.records[f.Pos]; ok {
			f.Reason = reason
		} else if q.stream != "" && f.Reason == "" {
			f.Reason = q.stream
		}
	}
}

// findPoison goes on with the search in the streams that a process worked on when it ended.
func (c *core) findPoison(attempts []attempt, e exit) {
	for _, v := range joined(attempts) {
		a := c.accounts.of[v.stream]
		if a == nil || v.generation != a.generation {
			continue
		}
		next, proven := a.search.crashed(v, e.killed)
		if proven && c.withhold(a, v, e) {
			next = next.found(v)
		}
		a.setSearch(next)
	}
}

// clearSuspect ends the search when its range was decoded after all.
func (a *account) clearSuspect(decoded int64) {
	if a.search.crashes > 0 && decoded >= a.search.to {
		a.setSearch(search{})
	}
}

func (a *account) setSearch(x search) {
	a.search = x
	a.stream.cursor.setQuarantine(func(q *quarantine) { q.search = x })
}

// maxInRow is how many records of a format may be quarantined in a row.
const maxInRow = 64

// withhold has a stream go on without the cause of a crash. It returns false when the
// decoder itself is the cause.
func (c *core) withhold(a *account, v attempt, e exit) bool {
	f := a.stream.feed.format
	if f.inQuarantine++; f.inQuarantine > maxInRow || v.step == atOpen && a.record.Snapshot == nil {
		return false
	}
	f.advance()
	log := c.log.With("format", f.name, "origin", a.record.Origin, "reason", e.reason, "error", e.err)
	switch v.step {
	case atFrames:
		log.Error("record quarantined: it ends its decoder's process", "offset", v.from)
		c.quarantine(a, v.from, e.reason)
	case atFlush:
		log.Error("decoder is not flushed any more: a flush ends its process")
		a.stream.cursor.setQuarantine(func(q *quarantine) { q.noFlush = true })
		c.unreadable(a.stream.feed, a.record.Origin, e.reason, "flush: "+e.err.Error())
	case atOpen:
		log.Error("snapshot dropped: it ends its decoder's process; the stream is decoded from its beginning")
		c.dropSnapshot(a)
	}
	return true
}

// maxPoison is how many frames of a stream are quarantined before all of it is.
const maxPoison = 4096

// quarantine withholds a frame from now on. A replay of the stream from any position is to
// leave out the same frames, so all of them are kept.
func (c *core) quarantine(a *account, pos int64, reason string) {
	records := maps.Clone(a.record.Poison)
	if records == nil {
		records = make(map[int64]string)
	}
	records[pos] = reason
	a.record.Poison = records
	c.commits.touch(a)
	a.stream.cursor.setQuarantine(func(q *quarantine) {
		q.records = records
		if len(records) >= maxPoison {
			q.stream = reason
		}
	})
}
