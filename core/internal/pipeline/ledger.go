package pipeline

import (
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// ledgers are the accounts whose row in the table of accounts is older than they are. Every
// batch changes some, and an insert of a few rows costs the store as much as one of messages:
// they are written every few seconds while traffic flows, and when it pauses. The checkpoint
// has for each stream up to where its row was written.
type ledgers struct {
	pending map[uint64]*account // by the stream's name
	written time.Time
	active  bool      // something was changed since the last call of due
	changed time.Time // when due last found that
}

// ledgerEvery is how old the rows of accounts may become.
const ledgerEvery = 5 * time.Second

// due reports whether rows are to be written. A pause is half of the flush interval.
func (l *ledgers) due(now time.Time, interval time.Duration) bool {
	if l.active {
		l.active, l.changed = false, now
	}
	return len(l.pending) > 0 && (now.Sub(l.written) >= ledgerEvery || now.Sub(l.changed) >= interval/2)
}

// take returns the accounts, whose rows are written now.
func (l *ledgers) take(now time.Time) []*account {
	out := make([]*account, 0, len(l.pending))
	for _, a := range l.pending {
		out = append(out, a)
	}
	clear(l.pending)
	l.written = now
	return out
}

// readBytes is up to where the stream of a record was read.
func readBytes(r *checkpoint.Stream) int64 {
	if r.Replay != nil {
		return max(r.Pos, r.Replay.Until)
	}
	return r.Pos
}

// resumeLedger has the row of a stream written that an earlier process did not come to write.
func (c *core) resumeLedger(f *Feed, r checkpoint.Stream) {
	name := nameOf(f.source, r.Key)
	if c.accounts.named[name] == nil && c.commits.ledgers.pending[name] == nil {
		c.commits.ledgers.pending[name] = &account{stream: &stream{name: name, feed: f}, record: r}
	}
}
