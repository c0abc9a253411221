package poll

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	gohash "hash"
	"net/url"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxState is the longest State that a recorder takes, with something to spare.
const maxState = 60 << 10

// openLedger opens the recording without frames. Its State has the pages and items that are
// recorded already, over restarts: the recording of an answer is closed and loses its State.
func (p *Poller) openLedger(ctx context.Context) error {
	if p.ledger != nil {
		return nil
	}
	id := source.ID{Key: "poll-" + hash(fmt.Appendf(nil, "%q %q %q", p.Method, p.url, p.Body)), Origin: source.Address(p.url)}
	r, err := p.rec.Begin(ctx, p.Format, id)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	p.ledger = r
	return nil
}

// recordAnswer records an answer as a stream of its own.
func (p *Poller) recordAnswer(ctx context.Context, u *url.URL, a *answer) error {
	r, err := p.rec.Begin(ctx, p.Format, source.ID{Origin: source.Address(u), Anchor: time.Now().UnixNano()})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	for i := range a.frames {
		if err := r.Record(ctx, &a.frames[i]); err != nil {
			return errors.Join(fmt.Errorf("record: %w", err), r.Close())
		}
	}
	return r.Close()
}

// seenItems are the items of a list that were recorded, as hashes of id and entry. As a
// State they are 12 bytes each, and the oldest are left out: they are read again
// after a restart.
type seenItems struct {
	entry map[uint64]uint32
	order []uint64 // as they were last changed
	dirty int      // changed since they were last marked
}

// markEvery is how many items may have to be read again after a crash.
const markEvery = 100

const entrySize = 12

func readSeenItems(state []byte) *seenItems {
	s := &seenItems{entry: make(map[uint64]uint32, len(state)/entrySize)}
	for ; len(state) >= entrySize; state = state[entrySize:] {
		s.set(binary.LittleEndian.Uint64(state), binary.LittleEndian.Uint32(state[8:]))
	}
	s.dirty = 0
	return s
}

func (s *seenItems) set(id uint64, entry uint32) {
	s.entry[id] = entry
	s.order = append(s.order, id)
	s.dirty++
	if len(s.order) > 2*len(s.entry)+1024 {
		s.order = s.latest(len(s.entry))
	}
}

// latest returns the ids that were last changed, at most n, the oldest first.
func (s *seenItems) latest(n int) []uint64 {
	out := make([]uint64, min(n, len(s.entry)))
	had := make(map[uint64]struct{}, len(out))
	at := len(out)
	for i := len(s.order) - 1; i >= 0 && at > 0; i-- {
		if _, twice := had[s.order[i]]; !twice {
			had[s.order[i]] = struct{}{}
			at--
			out[at] = s.order[i]
		}
	}
	return out[at:]
}

func (s *seenItems) state() []byte {
	var b []byte
	for _, id := range s.latest(maxState / entrySize) {
		b = binary.LittleEndian.AppendUint64(b, id)
		b = binary.LittleEndian.AppendUint32(b, s.entry[id])
	}
	return b
}

// digest is a hash of an answer as it arrives.
type digest struct{ gohash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) sum() string { return hex.EncodeToString(d.Sum(nil)[:8]) }

func hash64(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
