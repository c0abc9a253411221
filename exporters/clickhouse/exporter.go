package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/semconv"
)

// Settings of an Exporter. Only the DSN is required.
type Settings struct {
	Conn ConnSettings
	// Cluster, TTL, Sync and StoragePolicy shape the schema; see Schema.
	Cluster       string
	TTL           TTL
	Sync          bool
	StoragePolicy string

	// Quorum is insert_quorum on a cluster: how many replicas have the rows before the answer,
	// or auto for most of them. Empty: the server's default.
	Quorum string

	// CreateSchema makes the database and its tables, or brings them up to date,
	// before the first insert. Without it they are only looked at.
	CreateSchema bool
	// Timeout of one insert; 30 s when zero.
	Timeout time.Duration
	// MaxInsertBytes bounds one insert, about; 64 MiB when zero.
	MaxInsertBytes int
	// MaxSize bounds the tables on the disk: the oldest rows go first; 0: no bound.
	MaxSize int64
	// TempDir is where the rows of several batches are gathered for one insert; empty: each
	// batch has inserts of its own.
	TempDir string
	// ConversationsEvery is how old the lists of conversations may become while messages are
	// stored; 0: each insert waits until they are derived.
	ConversationsEvery time.Duration
	// Prices are written to model_prices, beside the rows that people insert; the default
	// ones when nil.
	Prices *price.Table
	// Dimensions are the rules of whose work a turn is, beside the default ones.
	Dimensions []attribution.Rule
	// Budgets are those whose alerts Alerts returns.
	Budgets []attribution.Budget
	// SilentAfter is the silence after which a span is called silent; 1 minute when zero.
	SilentAfter time.Duration
	// Profile names the spans; the default one when nil.
	Profile *semconv.Profile
	Logger  *slog.Logger // slog.Default when nil
	_       struct{}
}

// Exporter stores batches in ClickHouse.
type Exporter struct {
	settings  Settings
	schema    Schema
	conn      *Conn
	mu        sync.Mutex // of preparing
	ready     bool
	unready   atomic.Bool // the tables were not there when they were looked at last
	writers   *writers
	inserts   inserter
	batch     string              // the last one that was offered
	accepted  map[string]struct{} // tokens of its parts that are stored
	gathered  gathered
	parted    gathered // set apart to be stored, before those
	attempt   attempt  // to store others
	keeper    keeper
	underived underived
	alerting  alerting
}

var _ export.Exporter = (*Exporter)(nil)

// New returns an exporter. It does not dial: a server that is down delays the
// first Export, not the start of the sidecar. Prepare dials.
func New(_ context.Context, s Settings) (*Exporter, error) {
	s.Conn.Writer = true
	conn, err := open(s.Conn, false)
	if err != nil {
		return nil, err
	}
	if s.Timeout <= 0 {
		s.Timeout = 30 * time.Second
	}
	if s.MaxInsertBytes <= 0 {
		s.MaxInsertBytes = 64 << 20
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.Profile == nil {
		if s.Profile, err = semconv.New(""); err != nil {
			return nil, err
		}
	}
	if s.Prices == nil {
		s.Prices = price.Default()
	}
	s.SilentAfter = cmp.Or(s.SilentAfter, time.Minute)
	schema := Schema{Database: conn.database, Cluster: s.Cluster, TTL: s.TTL, Sync: s.Sync, StoragePolicy: s.StoragePolicy}
	x := &Exporter{settings: s, schema: schema, conn: conn, writers: newWriters(s.Profile, schema), gathered: gathered{dir: s.TempDir}, parted: gathered{dir: s.TempDir}, keeper: keeper{stored: newArrivals(), opened: conn.standby.stored}, underived: underived{some: make(chan struct{}, 1)}}
	x.inserts = inserter{conn: conn, settings: &x.settings, wire: newWire(conn.method), ended: x.checkTables}
	return x, nil
}

// Unread notes whether the rows have no reader at present: what is derived from them for readers waits then, for minutes at
// most. Budgets are a reader.
func (x *Exporter) Unread(ctx context.Context, unread bool) {
	x.keeper.unread.Store(unread && len(x.settings.Budgets) == 0)
	if unread {
		return
	}
	if err := x.underived.derive(ctx, x); err != nil {
		x.settings.Logger.Warn("clickhouse: the lists of conversations are behind", "error", err)
	}
	x.keeper.read.ring()
}

// Prepare implements export.Preparer: it connects and makes sure that the tables are there and fit.
func (x *Exporter) Prepare(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ready {
		return nil
	}
	err := x.prepare(ctx)
	x.unready.Store(err != nil)
	return err
}

func (x *Exporter) prepare(ctx context.Context) error {
	if !x.settings.CreateSchema {
		if err := x.schema.Verify(ctx, x.conn); err != nil {
			return err
		}
		x.prepared(ctx, false)
		return nil
	}
	done, err := x.schema.Apply(ctx, x.conn)
	if err != nil {
		return err
	}
	if n := len(done.Pending); n > 0 {
		x.settings.Logger.Info("clickhouse: tables are up to date", "migrations", n, "version", done.Pending[n-1].Version)
	}
	x.prepared(ctx, done.Applied == 0)
	return nil
}

// prepared writes the tables of settings: rows can be stored without them. A fresh database has no rows.
func (x *Exporter) prepared(ctx context.Context, fresh bool) {
	x.ready = true
	if x.keeper.cancel == nil {
		x.keeper.start(x, fresh)
	}
	if err := x.writePrices(ctx); err != nil {
		x.settings.Logger.Warn("clickhouse: write model_prices", "error", err)
	}
	if err := x.writeThresholds(ctx); err != nil {
		x.settings.Logger.Warn("clickhouse: write thresholds", "error", err)
	}
}

// isReady reports whether the tables are there, as far as is known.
func (x *Exporter) isReady() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ready
}

// checkTables has the tables made again before the next attempt if one of them is not there.
func (x *Exporter) checkTables(err error) {
	if SchemaDiffers(err) {
		x.forgetTables()
	}
}

func (x *Exporter) forgetTables() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ready = false
	x.unready.Store(true)
}

// Identity implements export.Stored: by the table of migrations, which no migration replaces.
func (x *Exporter) Identity(ctx context.Context) (id string, newest int64, err error) {
	for try := 0; id == "" && try < 2; try++ { // tables that are gone are made again
		if err := x.Prepare(ctx); err != nil {
			return "", 0, x.conn.mayPass(ctx, err)
		}
		if id, err = x.conn.Identity(ctx); err == nil && id == "" {
			x.forgetTables()
		}
	}
	if err == nil {
		err = x.conn.db.QueryRow(ctx, "SELECT toUnixTimestamp64Nano(toDateTime64(max(seen_at), 9)) FROM "+x.schema.name("source_ledger")).Scan(&newest)
	}
	if err != nil {
		x.checkTables(err)
		return "", 0, x.conn.mayPass(ctx, err)
	}
	return id, newest, nil
}

// Reached implements export.Stored: by the ledger of the streams, which is the last
// that is written of a batch.
func (x *Exporter) Reached(ctx context.Context) (map[export.Stream]int64, error) {
	if err := x.Prepare(ctx); err != nil {
		return nil, x.conn.mayPass(ctx, err)
	}
	rows, err := x.conn.db.Query(ctx, "SELECT toString(source), stream, max(read_bytes) FROM "+x.schema.name("source_ledger")+" GROUP BY source, stream")
	if err != nil {
		return nil, x.conn.mayPass(ctx, fmt.Errorf("clickhouse: read source_ledger: %w", err))
	}
	defer rows.Close()
	out := make(map[export.Stream]int64)
	for rows.Next() {
		var s export.Stream
		var read int64
		if err := rows.Scan(&s.Source, &s.Key, &read); err != nil {
			return nil, fmt.Errorf("clickhouse: read source_ledger: %w", err)
		}
		out[s] = read
	}
	if err := rows.Err(); err != nil {
		return nil, x.conn.mayPass(ctx, fmt.Errorf("clickhouse: read source_ledger: %w", err))
	}
	return out, nil
}

// Export stores a batch, one table after the other. The ledger of the
// streams is written behind the rows, so that it never claims a row that is not there.
func (x *Exporter) Export(ctx context.Context, b *export.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := x.Prepare(ctx); err != nil {
		return x.conn.mayPass(ctx, err) // the rows are not to blame for any of it
	}
	fresh := len(b.Messages)+len(b.Spans)+len(b.Rows) > 0
	if fresh {
		x.attempt.begin(time.Now(), derivableOf(b))
	}
	err := x.export(ctx, b)
	if err == nil && fresh {
		x.stored(ctx, &x.attempt)
	}
	return err
}

// attempt is one to store rows, or several of which none has succeeded.
type attempt struct {
	began time.Time // zero: there was none
	have  derivable // of the messages
}

func (a *attempt) begin(now time.Time, have derivable) {
	if a.began.IsZero() || now.Before(a.began) {
		a.began = now
	}
	a.have = a.have.or(have)
}

// stored notes the rows of an attempt, which are stored.
func (x *Exporter) stored(ctx context.Context, a *attempt) {
	x.note(a)
	x.alerting.spent.Store(true)
	if x.settings.ConversationsEvery == 0 {
		if err := x.underived.derive(ctx, x); err != nil { // the rows are stored
			x.settings.Logger.Warn("clickhouse: the lists of conversations are behind", "error", err)
		}
	}
}

// note notes the rows of an attempt, which may be stored, for those who derive from rows.
func (x *Exporter) note(a *attempt) {
	x.keeper.note(a.began)
	x.underived.note(a.began, a.have)
	*a = attempt{}
}

func (x *Exporter) export(ctx context.Context, b *export.Batch) error {
	if b.ID != x.batch {
		x.batch, x.accepted = b.ID, make(map[string]struct{})
	}
	if len(b.Rows) > 0 {
		return x.exportRows(ctx, b)
	}
	for _, j := range x.writers.jobs(b) {
		if err := x.run(ctx, b.ID, j()); err != nil {
			return err
		}
	}
	return nil
}

// run inserts the parts of a job that the server does not have yet. A batch that
// is offered again goes on where it stopped: from its beginning, a server that
// fails every tenth insert would never get through a batch of twenty.
func (x *Exporter) run(ctx context.Context, batch string, j *job) error {
	defer j.block.Reset()
	for _, p := range j.split(x.settings.MaxInsertBytes) {
		token := p.token(batch, j.name)
		if _, stored := x.accepted[token]; stored {
			continue
		}
		more := j.blocks(p)
		next := func(to *proto.Buffer) error {
			if !more() {
				return io.EOF
			}
			return j.block.Encode(to)
		}
		if err := x.inserts.run(ctx, insertion{table: j.table, next: next, token: token}); err != nil {
			return x.conn.classify(ctx, fmt.Errorf("clickhouse: insert %d rows into %s: %w", p.to-p.from, j.name, err))
		}
		x.accepted[token] = struct{}{}
	}
	return nil
}

// settle is how long after the time of its ingest_ts a row may come to be visible: as long as the largest insert may take, of
// gathered rows and a batch behind them.
func (s *Settings) settle() time.Duration {
	return max(5*time.Minute, s.longest(2*int64(s.MaxInsertBytes)))
}

// attributor applies the rules of the dimensions.
func attributorOf(x *Exporter) attributor {
	p := attributor{c: x.conn, s: x.schema, settle: x.settings.settle(), sleep: pause}
	if x.conn.embedded { // no other program stores rows
		p.catchUp = func(ctx context.Context) error { return x.underived.derive(ctx, x) }
	}
	return p
}

// Close ends the connections. The last work is attributed before.
func (x *Exporter) Close(ctx context.Context) error {
	x.keeper.stop()
	for _, a := range []*attempt{&x.parted.attempt, &x.attempt} {
		if !a.began.IsZero() { // the answer of an insert was lost
			x.note(a)
		}
	}
	x.parted.close()
	x.gathered.close()
	if x.isReady() {
		if err := x.underived.derive(ctx, x); err != nil {
			x.settings.Logger.Warn("clickhouse: the lists of conversations are behind until the next start", "error", err)
		}
	}
	if since, some := x.keeper.stored.left(); some && x.isReady() {
		p := attributorOf(x)
		err := x.keeper.rule(ctx, p, x.settings.Dimensions) // a short run may end before its keeper has written them
		if err == nil {
			_, err = p.pass(ctx, since)
		}
		if err != nil {
			x.settings.Logger.Warn("clickhouse: the last work has no team, user and ticket until the next start", "error", err)
		}
	}
	return x.conn.Close()
}
