package push

import (
	"container/list"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxKeys is how many idempotency keys are remembered, and maxMarked, how many of
// them over a restart.
const (
	maxKeys   = 10_000
	maxMarked = 256
)

// keys remembers the answers to requests with an idempotency key.
type keys struct {
	mu    sync.Mutex
	known map[string]*list.Element // of *known
	order *list.List               // the oldest in front

	// ledger is a recording without frames, whose State has the newest keys.
	ledger source.Recording
	marked []seen
}

// seen is a key as it is remembered over a restart.
type seen struct {
	Key    string `json:"key"` // its hash
	Hash   string `json:"hash,omitempty"`
	Frames int    `json:"frames"`
}

type known struct {
	key, hash string
	answer    *answer // nil while it is being answered
}

func newKeys() *keys { return &keys{known: make(map[string]*list.Element), order: list.New()} }

// begin returns the response to a request whose key is known, or reports that it must be
// processed: then done is called with the response.
func (k *keys) begin(key, hash string) (before *answer, done func(*answer)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.known[key]; e != nil {
		switch n := e.Value.(*known); {
		case n.answer == nil:
			return refuse(http.StatusConflict, "a request with this idempotency key is being answered"), nil
		case n.hash != hash:
			return otherBody(), nil
		default:
			return n.answer, nil
		}
	}
	n := &known{key: key, hash: hash}
	e := k.order.PushBack(n)
	k.known[key] = e
	for oldest := k.order.Front(); k.order.Len() > maxKeys && oldest != nil; {
		next := oldest.Next()
		if o := oldest.Value.(*known); o.answer != nil {
			k.order.Remove(oldest)
			delete(k.known, o.key)
		}
		oldest = next
	}
	return nil, func(a *answer) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if a.Error == "" {
			n.answer = a
			return
		}
		// It may be tried again.
		k.order.Remove(e)
		delete(k.known, key)
	}
}

func otherBody() *answer {
	return refuse(http.StatusUnprocessableEntity, "this idempotency key was used for another body")
}

// recall reads the keys that a process before this one has marked.
func (k *keys) recall(ctx context.Context, s *Server) {
	ledger, err := s.rec.Begin(ctx, s.Format, source.ID{Key: "idempotency", Origin: s.Path})
	if err == nil && len(ledger.State()) > 0 {
		err = json.Unmarshal(ledger.State(), &k.marked)
	}
	if err != nil {
		s.Logger.Warn("earlier idempotency keys are not known", "error", err)
	}
	k.ledger = ledger
	for _, n := range k.marked {
		k.known[n.Key] = k.order.PushBack(&known{n.Key, n.Hash, &answer{Status: http.StatusOK, Frames: n.Frames}})
	}
}

// mark marks a key with the recorder, in order with the batches recorded before.
func (k *keys) mark(key, hash string, frames int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ledger == nil {
		return nil
	}
	k.marked = append(k.marked, seen{key, hash, frames})
	if over := len(k.marked) - maxMarked; over > 0 {
		k.marked = append([]seen(nil), k.marked[over:]...)
	}
	b, err := json.Marshal(k.marked)
	if err != nil {
		return err
	}
	return k.ledger.Mark(b)
}
