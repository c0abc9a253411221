package delivery_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/spool"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of TestModel")
	seeds     = flag.Uint64("seeds", 12, "how many seeds TestModel has")
)

// The model: a process delivers the rows 0, 1, 2, … to two stores, one of which gathers. The stores fail, lose answers, hang, refuse a row and are slow, the
// spools are small or cannot be written, the checkpoint fails, and the process ends at any call. Always holds:
//
//   - The checkpoint is behind rows alone that each store has, its spool has, or it has refused; it never goes back.
//   - A token has the same rows each time, and they are stored once.
//   - The ledger of a store claims no row that it lacks.
//   - A few batches are in memory, and a bounded number is not acknowledged.
//   - In the end each store has each row but those that it refuses, and the spools are empty.
type model struct {
	*testing.T
	dir    string
	stores []*modelStore

	mu        sync.Mutex
	dead      bool // the process was killed: none of its calls has an effect
	fuse      int  // calls until it is; negative: it is not
	committed int  // rows
	commits   int
	submitted int
	released  int
	failing   bool // the checkpoint
	refused   map[string]map[int]bool
	kill      func()
}

// call counts a call, and reports whether the process was killed before it, or is behind it.
func (m *model) call(r *rand.Rand) (before, behind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return true, true
	}
	if m.fuse--; m.fuse == 0 {
		m.dead = true
		m.kill()
		before = r.IntN(2) == 0
		return before, true
	}
	return false, false
}

func (m *model) Commit(deltas ...checkpoint.Delta) error {
	m.mu.Lock()
	if m.dead || m.failing {
		m.mu.Unlock()
		return errAway
	}
	to := m.committed
	for _, d := range deltas {
		if len(d.Streams) == 0 {
			continue
		}
		if n := int(d.Streams[0].Pos); n < to {
			m.Errorf("the checkpoint goes back from %d to %d", to, n)
		} else {
			to = n
		}
	}
	m.committed = to
	m.commits++
	some := m.commits%4 == 0
	m.mu.Unlock()
	if some {
		m.acknowledged("a commit")
	}
	return nil
}

// acknowledged checks that the rows before the checkpoint are safe.
func (m *model) acknowledged(when string) {
	m.Helper()
	m.mu.Lock()
	to := m.committed
	m.mu.Unlock()
	for _, s := range m.stores {
		spooled := m.spooled(s.name) // a row is in the store before it leaves the spool
		m.mu.Lock()
		for row := range to {
			if !s.rows[row] && !spooled[row] && !m.refused[s.name][row] {
				m.Errorf("%s: row %d of %d is acknowledged, and %s does not have it", when, row, to, s.name)
				break
			}
		}
		m.mu.Unlock()
	}
}

// spooled are the rows in a spool, of which another process reads a copy.
func (m *model) spooled(name string) map[int]bool {
	out, to := make(map[int]bool), filepath.Join(m.TempDir(), name)
	from := filepath.Join(m.dir, name)
	if _, err := os.Stat(from); err != nil {
		from = filepath.Join(m.dir+".away", name)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		m.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(from, "*.spool"))
	for _, file := range append([]string{"cursor"}, files...) { // the cursor first: at worst records are read that are in the store by now
		if b, err := os.ReadFile(filepath.Join(from, filepath.Base(file))); err == nil {
			if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), b, 0o600); err != nil {
				m.Error(err)
			}
		}
	}
	q, err := spool.Open(to)
	if err != nil {
		m.Error(err)
		return nil
	}
	defer q.Close()
	for {
		record, err := q.Peek()
		if errors.Is(err, spool.ErrEmpty) {
			return out
		}
		var b export.Batch
		if err == nil {
			err = b.UnmarshalBinary(record[8:])
		}
		if err != nil {
			m.Error(err)
			return out
		}
		for _, t := range tablesOf(&b) {
			for _, row := range t.rows {
				out[row] = true
			}
		}
		if err := q.Take(); err != nil {
			m.Error(err)
			return out
		}
	}
}

// modelTable is rows of a table of a batch: numbers of rows, or of how many the ledger claims.
type modelTable struct {
	name  string
	rows  []int
	upTo  int // of the ledger
	block export.Rows
}

// tablesOf are the tables of a batch, the ledger behind the others.
func tablesOf(b *export.Batch) (out []modelTable) {
	if len(b.Messages) > 0 {
		var t modelTable
		for _, m := range b.Messages {
			t.rows = append(t.rows, int(m.Host.Seq))
		}
		out = append(out, encoded("messages", t.rows))
	}
	if len(b.Ledger) > 0 {
		out = append(out, encoded("ledger", []int{int(b.Ledger[0].Read)}))
	}
	for _, r := range b.Rows {
		var numbers []int
		for f := range strings.FieldsSeq(string(r.Data)) {
			n := 0
			_, _ = fmt.Sscan(f, &n)
			numbers = append(numbers, n)
		}
		out = append(out, encoded(r.Table, numbers))
	}
	return out
}

func encoded(name string, numbers []int) modelTable {
	t := modelTable{name: name, block: export.Rows{Table: name, Count: len(numbers), Data: []byte(strings.Trim(fmt.Sprint(numbers), "[]"))}}
	if name == "ledger" {
		t.upTo = numbers[0]
	} else {
		t.rows = numbers
	}
	return t
}

// gatheredBatches are batches that a store has gathered.
type gatheredBatches struct {
	ids    []string
	tables [][]modelTable
}

// modelStore is an exporter with its destination. The rows and tokens survive a process, and the rest does not.
type modelStore struct {
	model  *model
	name   string
	gather bool
	rnd    *rand.Rand // of inserts, one at a time
	takes  *rand.Rand // of Gather, beside them

	rows   map[int]bool      // with model.mu
	tokens map[string]string // with model.mu
	mode   string            // with model.mu

	batch            string
	accepted         map[string]bool
	gathered, parted gatheredBatches
}

var modes = []string{"well", "well", "fails", "fails once", "loses answers", "hangs", "refuses", "slow", "asks for a pause"}

const poison = 37 // of a hundred rows the one that is refused

// insert stores rows of a table.
func (s *modelStore) insert(ctx context.Context, t modelTable, token string) error {
	before, behind := s.model.call(s.rnd)
	m := s.model
	m.mu.Lock()
	mode := s.mode
	if mode == "fails once" {
		s.mode = "well"
	}
	m.mu.Unlock()
	if before {
		<-ctx.Done()
		return ctx.Err()
	}
	switch mode {
	case "fails", "fails once":
		return errAway
	case "asks for a pause":
		return &export.RetryAfter{Err: errAway, Wait: 2 * time.Second}
	case "slow":
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	case "hangs":
		select {
		case <-time.After(30 * time.Second):
		case <-ctx.Done():
		}
		if s.rnd.IntN(2) == 0 {
			return errAway
		}
	case "refuses":
		if slices.ContainsFunc(t.rows, func(n int) bool { return n%100 == poison }) {
			return export.Permanent(errors.New("not that row"))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead && !behind {
		return context.Canceled
	}
	switch was, ok := s.tokens[token]; {
	case ok && was != string(t.block.Data):
		m.Errorf("%s: token %s has rows %s, and had %s", s.name, token, t.block.Data, was)
	case !ok:
		s.tokens[token] = string(t.block.Data)
		for _, n := range t.rows {
			s.rows[n] = true
		}
		for n := range t.upTo {
			if !s.rows[n] && !m.refused[s.name][n] {
				m.Errorf("%s: the ledger claims %d rows, and row %d is not there", s.name, t.upTo, n)
				break
			}
		}
	}
	if behind || mode == "loses answers" || mode == "hangs" || ctx.Err() != nil {
		return errAway
	}
	return nil
}

func (s *modelStore) Export(ctx context.Context, b *export.Batch) error {
	if b.ID != s.batch {
		s.batch, s.accepted = b.ID, make(map[string]bool)
	}
	for i, t := range tablesOf(b) {
		token := fmt.Sprint(b.ID, t.name, i)
		if s.accepted[token] {
			continue
		}
		if err := s.insert(ctx, t, token); err != nil {
			return err
		}
		s.accepted[token] = true
	}
	return nil
}

func (*modelStore) Close(context.Context) error { return nil }

func (s *modelStore) Gather(b *export.Batch) bool {
	if !s.gather || len(s.gathered.ids) > 5 || s.takes.IntN(10) == 0 {
		return false
	}
	s.gathered.ids, s.gathered.tables = append(s.gathered.ids, b.ID), append(s.gathered.tables, tablesOf(b))
	return true
}

func (s *modelStore) Part() func(context.Context) error {
	if len(s.parted.ids) > 0 {
		s.model.Errorf("%s: %d batches are set apart while others are", s.name, len(s.parted.ids))
	}
	s.parted, s.gathered = s.gathered, gatheredBatches{}
	return func(ctx context.Context) error {
		id := strings.Join(s.parted.ids, ",")
		for _, name := range []string{"messages", "ledger"} {
			var numbers []int
			for _, tables := range s.parted.tables {
				for _, t := range tables {
					if t.name == name && name == "ledger" {
						numbers = []int{t.upTo}
					} else if t.name == name {
						numbers = append(numbers, t.rows...)
					}
				}
			}
			if len(numbers) == 0 {
				continue
			}
			if err := s.insert(ctx, encoded(name, numbers), id+name); err != nil {
				return err
			}
		}
		s.parted = gatheredBatches{}
		return nil
	}
}

func (s *modelStore) Ungather(put func(*export.Batch) error) error {
	for _, g := range []*gatheredBatches{&s.parted, &s.gathered} {
		for len(g.ids) > 0 {
			b := &export.Batch{ID: g.ids[0] + "g"}
			for _, t := range g.tables[0] {
				b.Rows = append(b.Rows, t.block)
			}
			if err := put(b); err != nil {
				return err
			}
			g.ids, g.tables = g.ids[1:], g.tables[1:]
		}
	}
	return nil
}

func (s *modelStore) Split(b *export.Batch) (halves [2]*export.Batch, ok bool) {
	if len(b.Rows) != 1 || b.Rows[0].Count < 2 {
		return halves, false
	}
	t := tablesOf(b)[0]
	for i, rows := range [][]int{t.rows[:len(t.rows)/2], t.rows[len(t.rows)/2:]} {
		halves[i] = &export.Batch{ID: b.ID + fmt.Sprint(i), Rows: []export.Rows{encoded(t.name, rows).block}}
	}
	return halves, true
}

// life is one process: it delivers rows from the checkpoint on until it ends, or has delivered all.
func (m *model) life(seed uint64, rows int, last bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	m.dead, m.fuse, m.failing, m.kill, m.submitted, m.released = false, -1, false, cancel, 0, 0
	if !last && r.IntN(2) == 0 {
		m.fuse = 1 + r.IntN(60)
	}
	var targets []delivery.Target
	for i, s := range m.stores {
		s.rnd, s.takes = rand.New(rand.NewPCG(seed, uint64(10+i))), rand.New(rand.NewPCG(seed, uint64(20+i)))
		s.batch, s.gathered, s.parted, s.mode = "", gatheredBatches{}, gatheredBatches{}, "well"
		targets = append(targets, delivery.Target{Name: s.name, Exporter: s})
	}
	most := []int64{1, 1 + r.Int64N(12_000), 1 << 20}[r.IntN(3)]
	d, err := delivery.New(delivery.Settings{
		Metrics: telemetry.New(), SpoolDir: m.dir, SpoolMax: most,
		Refused: func(name string, b *export.Batch, _ error) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.dead {
				return errAway
			}
			for _, t := range tablesOf(b) {
				for _, n := range t.rows {
					if n%100 != poison {
						m.Errorf("%s: row %d is refused", name, n)
					}
					m.refused[name][n] = true
				}
			}
			return nil
		},
		Damaged:  func(name string, err error) { m.Errorf("%s: %v", name, err) },
		Released: func(*export.Batch) { m.mu.Lock(); m.released++; m.mu.Unlock() },
	}, m, targets...)
	if err != nil {
		m.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { d.Run(ctx) })
	submitted := make(chan struct{})
	wg.Go(func() { m.submit(ctx, d, rand.New(rand.NewPCG(seed, 2)), rows); close(submitted) })
	if !last {
		wg.Go(func() { m.disturb(ctx, rand.New(rand.NewPCG(seed, 3))) })
		select {
		case <-time.After(time.Duration(r.IntN(90_000)) * time.Millisecond):
		case <-ctx.Done():
		}
	} else {
		<-submitted
		for began := time.Now(); ; time.Sleep(time.Second) {
			m.mu.Lock()
			done := m.committed == rows
			m.mu.Unlock()
			if done && d.Settled() {
				break
			}
			if time.Since(began) > time.Hour {
				m.Fatalf("%d of %d rows are acknowledged in an hour, settled: %t", m.committed, rows, d.Settled())
			}
		}
	}
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	cancel()
	wg.Wait()
	d.Close()
	m.back()
	if r.IntN(3) == 0 && !last {
		m.tear(r)
	}
	m.acknowledged("the end of a process")
}

// submit submits the rows behind the checkpoint, in batches that are cut anew, some with a checkpoint of their own.
func (m *model) submit(ctx context.Context, d *delivery.Delivery, r *rand.Rand, rows int) {
	for at := m.committed; at < rows; {
		n := min(1+r.IntN(12), rows-at)
		b := &export.Batch{ID: fmt.Sprintf("%d-%d", at, at+n)}
		for row := range n {
			b.Messages = append(b.Messages, &msg.Message{Host: msg.Host{Seq: uint64(at + row)}})
		}
		at += n
		var delta checkpoint.Delta
		more := r.IntN(8) > 0 && at < rows
		if !more || r.IntN(3) == 0 {
			b.Ledger = []msg.Ledger{{Read: int64(at)}}
			b.ID += "l"
			delta.Streams = []checkpoint.Stream{{Pos: int64(at)}}
		}
		m.mu.Lock()
		m.submitted++
		if left := m.submitted - m.released; left > 4 {
			m.Errorf("%d batches are in memory", left)
		}
		m.mu.Unlock()
		if d.Submit(ctx, b, delta, more, func() {}, func() {}) != nil {
			return
		}
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		}
	}
}

// disturb changes how the stores, the disk and the checkpoint are.
func (m *model) disturb(ctx context.Context, r *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(r.IntN(4000)) * time.Millisecond):
		}
		m.mu.Lock()
		if m.dead {
			m.mu.Unlock()
			return
		}
		switch r.IntN(8) {
		case 0:
			m.failing = !m.failing
		case 1:
			if os.Rename(m.dir, m.dir+".away") != nil {
				_ = os.Rename(m.dir+".away", m.dir)
			}
		default:
			m.stores[r.IntN(len(m.stores))].mode = modes[r.IntN(len(modes))]
		}
		m.mu.Unlock()
	}
}

// back brings the spools back.
func (m *model) back() {
	if _, err := os.Stat(m.dir + ".away"); err == nil {
		_ = os.RemoveAll(m.dir)
		if err := os.Rename(m.dir+".away", m.dir); err != nil {
			m.Fatal(err)
		}
	}
}

// tear leaves a part of a record at the end of a spool, as a process does that is killed.
func (m *model) tear(r *rand.Rand) {
	files, err := filepath.Glob(filepath.Join(m.dir, "*", "*.spool"))
	if err != nil || len(files) == 0 {
		return
	}
	f, err := os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		m.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte{0, 0, 0, 99, 1, 2, 3, 4, 5, 6, 7, 8}[:1+r.IntN(12)]); err != nil {
		m.Fatal(err)
	}
}

// TestModel runs the model, with a seed each.
func TestModel(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spools")
			synctest.Test(t, func(t *testing.T) {
				m := &model{T: t, dir: dir, refused: make(map[string]map[int]bool)}
				for i, name := range []string{"gathers", "plain"} {
					m.stores = append(m.stores, &modelStore{model: m, name: name, gather: i == 0, rows: make(map[int]bool), tokens: make(map[string]string)})
					m.refused[name] = make(map[int]bool)
				}
				r := rand.New(rand.NewPCG(seed, 0))
				rows := 0
				for range 3 + r.IntN(3) {
					rows += 50 + r.IntN(400)
					m.life(r.Uint64(), rows, false)
					if t.Failed() {
						return
					}
				}
				m.life(r.Uint64(), rows+20, true)
				for _, s := range m.stores {
					for row := range rows + 20 {
						if !s.rows[row] && !m.refused[s.name][row] {
							t.Fatalf("%s does not have row %d of %d", s.name, row, rows+20)
						}
					}
					if left := m.spooled(s.name); len(left) > 0 {
						t.Errorf("%d rows are left in the spool of %s", len(left), s.name)
					}
				}
			})
		})
	}
}
