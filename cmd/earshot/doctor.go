package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, note, fail
	Detail string `json:"detail"`
}

// doctor collects findings.
type doctor struct {
	cfg   *config.Config
	found []finding
}

func (d *doctor) say(status, check, format string, args ...any) {
	d.found = append(d.found, finding{check, status, fmt.Sprintf(format, args...)})
}

func (d *doctor) ok(check, format string, args ...any)   { d.say("ok", check, format, args...) }
func (d *doctor) note(check, format string, args ...any) { d.say("note", check, format, args...) }
func (d *doctor) fail(check, format string, args ...any) { d.say("fail", check, format, args...) }

func newDoctor() *cobra.Command {
	var file configFile
	var output string
	var deep bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Prove that nothing is missing, or report each problem",
		Long: `Check the data directory, the disk, the decoders, the store and its schema, the
clock, and the books of each source: that every byte read was decoded, quarantined or
dropped for a reason, that the tables have the rows in the books, and that no part of
a file is unread. Differences are explained. It fails for a file or database that may
not be read, for paths that match none, for a source whose decoder recognizes next to
nothing, and for one whose server did not answer the sidecar that runs.

With --deep the files are decoded again without storing, and every message is looked
up in the tables. Without it that is done for file sources of up to 256 MiB that have
fewer rows than messages.

The exit status is 1 when a check fails; a note is not a failure.`,
		Example: `  earshot doctor -c earshot.yaml
  earshot doctor --deep -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.loadSources(c.Context())
			if err != nil {
				return err
			}
			d := &doctor{cfg: cfg}
			d.directory()
			d.decoders(c.Context())
			d.store(c.Context(), deep)
			failed := 0
			for _, f := range d.found {
				if f.Status == "fail" {
					failed++
				}
			}
			if output == "json" {
				err = writeJSON(c.OutOrStdout(), d.found)
			} else {
				err = d.print(c.OutOrStdout())
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%d of %d checks failed", failed, len(d.found))
			}
			return err
		},
	}
	file.add(c)
	outputFlag(c, &output)
	c.Flags().BoolVar(&deep, "deep", false, "decode the files again and look for every message")
	return c
}

// print writes the findings as a table, whose sentences go on in their column where a terminal is narrower.
func (d *doctor) print(w io.Writer) error {
	width, _ := terminal(w)
	if width > 0 {
		status, check := 0, len("check")
		for _, f := range d.found {
			status, check = max(status, len(f.Status)), max(check, inspect.Visible(f.Check))
		}
		width = max(20, width-status-gap-check-gap)
	}
	rows := make([][]string, 0, len(d.found))
	for _, f := range d.found {
		for i, line := range inspect.Lines(f.Detail, width) {
			if i > 0 {
				f.Status, f.Check = "", ""
			}
			rows = append(rows, []string{f.Status, f.Check, line})
		}
	}
	return writeTable(w, []string{"", "check", "finding"}, rows)
}

// directory checks the data directory and its disk.
func (d *doctor) directory() {
	dir := d.cfg.DataDir
	if _, err := os.Stat(dir); err != nil {
		d.fail("data_dir", "%v: nothing has run with this configuration yet; `earshot run` begins", err)
		return
	}
	probe, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		d.fail("data_dir", "not writable: %v", err)
	} else {
		_ = errors.Join(probe.Close(), os.Remove(probe.Name()))
		if shared := app.SharedData(dir); shared != "" {
			d.note("data_dir", "%s", shared)
		} else {
			d.ok("data_dir", "%s is ours alone", dir)
		}
	}
	if free, ok := app.FreeDisk(dir); ok {
		if least := int64(d.cfg.Journal.MinFreeDisk); free < least {
			d.fail("disk", "%s left, less than journal.min_free_disk (%s)", byteSize(free), byteSize(least))
		} else {
			d.ok("disk", "%s left", byteSize(free))
		}
	}
}

func (d *doctor) decoders(ctx context.Context) {
	if len(d.cfg.Sources) == 0 {
		d.note("sources", "no agent has a conversation on this machine")
		return
	}
	problems, err := decoders().Check(ctx, d.cfg)
	if err != nil {
		d.fail("decoders", "%v", err)
	}
	for _, p := range problems {
		d.fail("decoders", "%s: %s", p.Path, p.Message)
	}
	if err == nil && len(problems) == 0 {
		d.ok("decoders", "all start and take the options of their sources")
	}
	for _, text := range decoders().Warnings(d.cfg) {
		d.note("decoders", "%s", text)
	}
}

// store checks the store, and the ledger against its rows.
func (d *doctor) store(ctx context.Context, deep bool) {
	r, err := openReader(ctx, d.cfg)
	if err != nil {
		d.fail("store", "%v", err)
		return
	}
	defer func() { _ = r.Close() }()
	before := time.Now()
	rows, now, err := inspect.Rows(ctx, r)
	took := time.Since(before)
	if err != nil {
		d.fail("store", "%v", err)
		return
	}
	d.schema(ctx, r)
	// The store's clock was read somewhere between.
	if skew := max(before.Sub(now), now.Sub(before.Add(took)), 0); skew > 5*time.Second {
		d.fail("clock", "ours and the store's are %s apart", skew.Round(time.Second))
	} else {
		d.ok("clock", "ours and the store's agree")
	}
	state, err := app.ReadState(d.cfg)
	if err != nil {
		d.fail("checkpoint", "%v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(state.Spooled)) {
		d.note("spool", "%s wait on the disk for %s", byteSize(state.Spooled[name]), name)
	}
	accounts, err := inspect.Accounts(ctx, r)
	if err != nil {
		d.fail("books", "%v", err)
		return
	}
	suspects := d.suspects(accounts, rows)
	d.books(accounts, rows, func(source string) bool { return deep || slices.Contains(suspects, source) })
	d.positions(accounts, state)
	d.identity(ctx, r, state)
	surveys, denied := d.unread(ctx, accounts)
	d.files(accounts, surveys, denied)
	d.formats(ctx, r)
	d.losses(ctx, r)
	d.servers(ctx)
	if deep {
		d.deep(ctx, r, nil)
	} else if len(suspects) > 0 {
		d.deep(ctx, r, suspects)
	}
}

func (d *doctor) schema(ctx context.Context, r *reader) {
	s, _ := schema(d.cfg, "")
	s.Database = r.conn.Database()
	plan, err := s.Plan(ctx, r.conn)
	if err != nil {
		d.fail("schema", "%v", err)
		return
	}
	var diff bytes.Buffer
	differs, err := s.Diff(ctx, r.conn, &diff)
	switch {
	case err != nil:
		d.fail("schema", "%v", err)
	case differs:
		d.fail("schema", "the tables differ from the schema of this program (earshot schema diff): %s", inspect.Clip(strings.TrimSpace(diff.String()), 120))
	default:
		d.ok("schema", "store %s, migration %d, nothing differs", plan.Server, plan.Applied)
	}
}

// books checks law 1 for each source: read = decoded + quarantined + dropped, and
// the rows that the books speak of. The messages of the sources that are again are decoded again behind it.
func (d *doctor) books(accounts []inspect.Account, rows map[string]inspect.Stored, again func(source string) bool) {
	sums := make(map[string]*inspect.Account)
	for i := range accounts {
		a := &accounts[i]
		if n := a.Unaccounted(); n != 0 {
			d.fail("books "+a.Source, "%s: of %d bytes that were read %d became nothing: a bug", a.Origin, a.Read, n)
		}
		s := sums[a.Source]
		if s == nil {
			s = &inspect.Account{Source: a.Source}
			sums[a.Source] = s
		}
		s.Read += a.Read
		s.Decoded += a.Decoded
		s.Quarantined += a.Quarantined
		s.Dropped += a.Dropped
		s.Messages += a.Messages
		s.Problems += a.Problems
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s, has := sums[name], rows[name]
		check := "books " + name
		if s.Unaccounted() == 0 {
			d.ok(check, "%d bytes read = %d decoded + %d quarantined + %d dropped", s.Read, s.Decoded, s.Quarantined, s.Dropped)
		}
		switch gone := s.Messages - int64(has.Messages); {
		case gone == 0:
			open := ""
			if has.Open > 0 {
				open = fmt.Sprintf("; %d more are incomplete", has.Open)
			}
			d.ok(check, "%d messages, all of them rows%s", s.Messages, open)
		case s.Messages > 0 && has.Messages == 0:
			d.fail(check, "%d messages and no row: the table was emptied, or retention has taken all of it", s.Messages)
		case gone > 0:
			where := "--deep tells"
			if again(name) {
				where = "see deep " + name
			}
			d.note(check, "%d messages in %d rows: %d replaced an earlier version of themselves, or are past their retention (%s)", s.Messages, has.Messages, gone, where)
		default:
			d.note(check, "%d messages in %d rows: a later decoder has read more (earshot backfill), or a file was read under two names", s.Messages, has.Messages)
		}
		switch gone := s.Problems - int64(has.DeadLetters); {
		case gone > 0:
			d.fail(check, "%d problems and %d dead letters: retention has taken some, or rows are missing", s.Problems, has.DeadLetters)
		case has.DeadLetters > 0:
			d.note(check, "%d dead letters, %d of them resolved (earshot dlq list)", has.DeadLetters, has.Resolved)
		}
	}
}

// positions checks that the store's books reach as far as the checkpoint.
func (d *doctor) positions(accounts []inspect.Account, state app.State) {
	if state.Running {
		d.note("checkpoint", "a sidecar runs here and has it open; it is not compared")
		return
	}
	type key struct{ source, stream string }
	read := make(map[key]int64)
	for i := range accounts {
		read[key{accounts[i].Source, accounts[i].Stream}] = accounts[i].Read
	}
	behind := 0
	for _, s := range state.Streams {
		if got := read[key{s.Source, s.Stream}]; got < s.Written {
			behind++
			if behind <= 3 && len(state.Spooled) == 0 {
				d.fail("checkpoint", "%s: rows up to %d, and %d were accepted", s.Origin, got, s.Written)
			}
		}
	}
	switch {
	case behind == 0:
		d.ok("checkpoint", "%d streams, the tables have all up to where each was read", len(state.Streams))
	case len(state.Spooled) > 0:
		d.note("checkpoint", "%d of %d streams reach further than the tables: the rest is in a spool", behind, len(state.Streams))
	}
}

// identity checks that the store is the one that the checkpoint belongs to, and its size.
func (d *doctor) identity(ctx context.Context, r *reader, state app.State) {
	id, err := r.conn.Identity(ctx)
	switch {
	case err != nil:
		d.fail("store", "%v", err)
	case state.Store != "" && state.Store != id:
		d.fail("store", "it is not the one that had the rows until now (%s, was %s): it was emptied or replaced; earshot backfill reads again what the sources still have", id, state.Store)
	case state.Store != "":
		d.ok("store", "it is the one that the checkpoint belongs to")
	}
	if !d.cfg.Embedded() {
		return
	}
	n, err := r.conn.Size(ctx)
	if err != nil {
		d.fail("store", "%v", err)
		return
	}
	limits := "rows are kept for ever"
	if age := d.cfg.Store.MaxAge; age > 0 {
		limits = "rows are kept for " + ageText(time.Duration(age))
	}
	if most := d.cfg.Store.MaxSize; most > 0 {
		limits += fmt.Sprintf(", the oldest are removed at %s", byteSize(int64(most)))
	}
	d.ok("store", "%s; %s", byteSize(n), limits)
}

// ageText is a duration as configurations have it: in days, if it is whole days.
func ageText(d time.Duration) string {
	if day := 24 * time.Hour; d%day == 0 {
		return count(int(d/day), "day")
	}
	return d.String()
}

// unread reports the files of file sources that are not read at all, with the reason, and
// returns their number.
func (d *doctor) unread(ctx context.Context, accounts []inspect.Account) (surveys []app.FileReport, n int) {
	surveys, err := app.ReportFiles(ctx, decoders(), d.cfg, false, nil)
	if err != nil {
		d.fail("files", "%v", err)
		return nil, 1
	}
	for i := range surveys {
		s := &surveys[i]
		n += len(s.Unread)
		for _, text := range s.UnreadableWarnings() {
			d.fail("files", "%s", text)
		}
		before := slices.ContainsFunc(accounts, func(a inspect.Account) bool { return a.Source == s.Source })
		for _, text := range s.OtherWarnings() {
			if before { // the files that it had are gone: see below
				d.note("files", "%s any more", text)
			} else {
				d.fail("files", "%s", text)
			}
		}
	}
	return surveys, n
}

// servers checks that the servers of live sources answered when they were last asked, as the sidecar that runs has found.
func (d *doctor) servers(ctx context.Context) {
	each(scrape(ctx, app.MetricsAddress(d.cfg))["earshot_source_failing"], func(source string, v float64) {
		if v > 0 {
			d.fail("source "+source, "its server did not answer when it was last asked, or not as it should: the log of the sidecar has the reason")
		}
	})
}

// formats checks that the decoders recognize the traffic of their sources.
func (d *doctor) formats(ctx context.Context, r *reader) {
	fits, err := inspect.Fits(ctx, r)
	if err != nil {
		d.fail("formats", "%v", err)
		return
	}
	for _, text := range misfits(ctx, d.cfg, fits) {
		d.fail("formats", "%s", text)
	}
}

// files compares the ledger with the files on disk; denied files may not be read.
func (d *doctor) files(accounts []inspect.Account, surveys []app.FileReport, denied int) {
	var sum app.UnreadFiles
	for i := range surveys {
		r := &surveys[i]
		at := slices.IndexFunc(d.cfg.Sources, func(s config.Source) bool { return s.Name == r.Source })
		var streams []app.ReadUpTo
		for _, a := range accounts {
			if a.Source == r.Source {
				streams = append(streams, app.ReadUpTo{Stream: a.Stream, Origin: a.Origin, Read: a.Read})
			}
		}
		c := app.CompareFiles(&d.cfg.Sources[at], r, streams)
		if c.Unknown {
			d.note("files", "source %s began at the end of its files (start_at), so that they are not compared", r.Source)
		}
		sum.Bytes += c.Bytes
		sum.Files += c.Files
		sum.Shorter += c.Shorter
		sum.Gone += c.Gone
		sum.Old += c.Old
	}
	if sum.Files > 0 {
		d.note("files", "%s in %d files are not read yet, or are last lines without an end", byteSize(sum.Bytes), sum.Files)
	}
	if sum.Shorter > 0 {
		d.note("files", "%d files are shorter than the part that was read: replaced or truncated", sum.Shorter)
	}
	if sum.Gone > 0 {
		d.note("files", "%d files that were read are gone", sum.Gone)
	}
	if sum.Old > 0 {
		d.note("files", "%d files are left alone, since they are older than ignore_older_than", sum.Old)
	}
	if sum.Files == 0 && denied == 0 {
		d.ok("files", "nothing that is there is unread")
	}
}

// deep decodes the files of all sources, or of some, and looks for the row of each message.
func (d *doctor) deep(ctx context.Context, r *reader, sources []string) {
	expected, err := app.Expected(ctx, app.Settings{Config: d.cfg, Decoders: decoders(), Logger: slog.New(slog.DiscardHandler)}, sources)
	if err != nil {
		d.fail("deep", "%v", err)
		return
	}
	for _, source := range slices.Sorted(maps.Keys(expected)) {
		want := expected[source]
		total, found := len(want), 0
		err := r.Each(ctx, "SELECT toString(message_id) FROM messages WHERE source = {source:String}", map[string]string{"source": source}, func(v []any) error {
			var id msg.ID
			text, _ := v[0].(string)
			if _, err := hex.Decode(id[:], []byte(text)); err != nil {
				return fmt.Errorf("message_id %q: %w", text, err)
			}
			if _, ok := want[id]; ok {
				found++
				delete(want, id)
			}
			return nil
		})
		switch {
		case err != nil:
			d.fail("deep "+source, "%v", err)
		case len(want) > 0:
			var one msg.ID
			for one = range want {
				break
			}
			d.fail("deep "+source, "%d of %d messages that the files have are not in the tables, %s is one: not read yet, past their retention, or lost (earshot backfill brings back what the files have)", len(want), total, one)
		default:
			d.ok("deep "+source, "all %d messages that the files have are in the tables", found)
		}
	}
}
