package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// TestMain runs the tests, or the agent that a test kills.
func TestMain(m *testing.M) {
	if path := os.Getenv("AGENT_DATABASE"); path != "" {
		agent(path)
	}
	goleak.VerifyTestMain(m)
}

const schema = `CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT, created INTEGER);
	CREATE TABLE part (id TEXT PRIMARY KEY, session TEXT, created INTEGER, data TEXT, note BLOB);`

var tables = []Table{{Table: "session", Order: "created"}, {Table: "part", Order: "created", JSON: []string{"data"}}, {Table: "absent"}}

func open(t testing.TB, path, mode string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode("+mode+")&_pragma=busy_timeout(0)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func run(t testing.TB, rec *recordtest.Recorder, path string) (*Source, func()) {
	t.Helper()
	s, err := New(Config{Paths: []string{path}, Interval: spec.Duration(5 * time.Millisecond), MaxRow: 1 << 20, Tables: tables}, source.Env{Name: "s", Format: "f"})
	if err != nil {
		t.Fatal(err)
	}
	return s, rec.Run(t, s)
}

// wait waits until the source has read everything.
func wait(t testing.TB, s *Source) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if s.idle.CompareAndSwap(true, false) { // and once more, after the rows that were written before
			for ; time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
				if s.Idle() {
					return
				}
			}
		}
		if time.Now().After(end) {
			t.Fatal("never idle")
		}
	}
}

// fold is the last version of each row that was recorded.
func fold(frames []frame.Frame) map[string]string {
	out := make(map[string]string)
	for _, f := range frames {
		var r struct {
			Table string
			Row   struct{ ID string }
		}
		if f.Reason == "" && json.Unmarshal(f.Data, &r) == nil {
			out[r.Table+" "+r.Row.ID] = string(f.Data)
		}
	}
	return out
}

// content has the rows of the database, as frames.
func content(t testing.TB, db *sql.DB) map[string]string {
	t.Helper()
	out := make(map[string]string)
	rows, err := db.Query("SELECT 'session', id, json_object('table','session','row',json_object('id',id,'title',title,'created',created)) FROM session " +
		"UNION ALL SELECT 'part', id, json_object('table','part','row',json_object('id',id,'session',session,'created',created,'data',json(data),'note',CAST(note AS TEXT))) FROM part")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table, id, data string
		if err := rows.Scan(&table, &id, &data); err != nil {
			t.Fatal(err)
		}
		out[table+" "+id] = data
	}
	return out
}

// live are those of the recorded rows that the database still has.
func live(recorded, now map[string]string) map[string]string {
	out := make(map[string]string)
	for k, v := range recorded {
		if _, ok := now[k]; ok {
			out[k] = v
		}
	}
	return out
}

// TestRandomHistories: after any history of inserts, updates, deletions, checkpoints, VACUUM,
// restored backups, and restarts of the sidecar from an older State, the rows that were recorded
// fold to those of the database.
func TestRandomHistories(t *testing.T) {
	for _, mode := range []string{"wal", "delete", "truncate", "persist"} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(mode, seed), func(t *testing.T) { history(t, mode, seed) })
		}
	}
}

func history(t *testing.T, mode string, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "a.db"), filepath.Join(dir, "backup")
	db := open(t, path, mode)
	do(t, db, schema)
	rec := recordtest.New()
	s, stop := run(t, rec, path)
	n := 0
	for range 60 {
		switch k := rnd.IntN(24); {
		case k < 10:
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + rnd.IntN(12) {
				n++
				text, _ := json.Marshal(strings.Repeat("x", rnd.IntN(1500)))
				if _, err := tx.Exec("INSERT INTO part VALUES (?,?,?,?,?)", fmt.Sprint("p", n), "s", n, `{"text":`+string(text)+`}`, []byte("n")); err != nil {
					t.Fatal(err)
				}
			}
			if rnd.IntN(5) == 0 {
				_ = tx.Rollback()
			} else if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		case k < 12:
			do(t, db, "INSERT OR REPLACE INTO session VALUES (?,?,?)", fmt.Sprint("s", rnd.IntN(5)), fmt.Sprint("title", n), n)
		case k < 17:
			do(t, db, "UPDATE part SET data=json_object('text',?) WHERE id=?", fmt.Sprint("updated", rnd.IntN(1000)), fmt.Sprint("p", rnd.IntN(n+1)))
		case k < 18:
			do(t, db, "DELETE FROM part WHERE created % 17 = ?", rnd.IntN(17))
		case k < 19:
			do(t, db, "VACUUM")
		case k < 20:
			do(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
		case k < 21: // a backup, which is restored later by another file in its place
			_ = os.Remove(backup)
			do(t, db, "VACUUM INTO ?", backup)
		case k < 22:
			b, err := os.ReadFile(backup)
			if err != nil {
				continue
			}
			_ = db.Close()
			if err := os.WriteFile(path+".new", b, 0o600); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path + "-wal")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			db = open(t, path, mode)
			do(t, db, "UPDATE session SET title=title")
		case k < 23:
			stop()
			s, stop = run(t, rec, path)
		default:
			time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
		}
	}
	wait(t, s)
	now := content(t, db)
	if d := cmp.Diff(now, live(fold(rec.Streams()[0].Frames), now)); d != "" {
		t.Fatalf("(-database +recorded):\n%s", d[:min(len(d), 2000)])
	}
	for _, f := range rec.Streams()[0].Frames {
		if f.Reason != "" {
			t.Errorf("%s: %s", f.Reason, f.Data)
		}
	}
	// Everything was read, and nothing changes: a restart records nothing.
	stop()
	before := len(rec.Streams()[0].Frames)
	s, stop = run(t, rec, path)
	wait(t, s)
	stop()
	if after := len(rec.Streams()[0].Frames); after != before {
		t.Errorf("a restart recorded %d rows again", after-before)
	}
}

// TestRestartRecordsWhatIsNew: rows that were inserted while the sidecar did not run are recorded,
// and no other ones.
func TestRestartRecordsWhatIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path, "wal")
	do(t, db, schema)
	insert := func(n int) {
		do(t, db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<?) INSERT INTO part SELECT hex(randomblob(8)), 's', i, '{}', NULL FROM n", n)
	}
	insert(5000)
	rec := recordtest.New()
	want := 5000
	for range 2 {
		s, stop := run(t, rec, path)
		wait(t, s)
		stop()
		if got := len(rec.Streams()[0].Frames); got != want {
			t.Fatalf("%d rows were recorded, want %d", got, want)
		}
		insert(100)
		want += 100
	}
}

// agent writes rows until it is killed. With a rollback journal it pauses between them: a writer that never does leaves no
// moment in which the database can be read without a lock, and the larger the file grows the fewer.
func agent(path string) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode("+os.Getenv("AGENT_MODE")+")&_pragma=busy_timeout(0)")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	for i := 0; ; i++ {
		if os.Getenv("AGENT_MODE") != "wal" {
			time.Sleep(20 * time.Millisecond)
		}
		if _, err := db.Exec("INSERT INTO part SELECT 'r' || count(*), 's', count(*), json_object('text', hex(randomblob(2000))), NULL FROM part"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3) // a lock
		}
		if i%7 == 0 {
			if _, err := db.Exec("UPDATE part SET data='{}' WHERE rowid=?", i/2); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
		}
	}
}

// TestAgentIsKilled: an agent that is killed in the middle of writing, again and again, has its
// rows recorded, and none of its writes ever finds a lock.
func TestAgentIsKilled(t *testing.T) {
	for _, mode := range []string{"wal", "delete"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			db := open(t, path, mode)
			do(t, db, schema)
			_ = db.Close()
			rec := recordtest.New()
			s, _ := run(t, rec, path)
			for range 2 {
				rows := 0
				if all := rec.Streams(); len(all) > 0 {
					rows = len(all[0].Frames)
				}
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "AGENT_DATABASE="+path, "AGENT_MODE="+mode)
				var text strings.Builder
				c.Stderr = &text
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				rec.Want(t, "rows", func(all []recordtest.Stream) bool { return len(all) > 0 && len(all[0].Frames) > rows+20 })
				_ = c.Process.Kill()
				if err := c.Wait(); c.ProcessState.ExitCode() != -1 {
					t.Fatalf("the agent ended by itself: %v %s", err, &text)
				}
			}
			db = open(t, path, mode)
			do(t, db, "INSERT INTO session VALUES ('last','',0)") // a rollback journal is played back
			wait(t, s)
			now := content(t, db)
			if d := cmp.Diff(now, live(fold(rec.Streams()[0].Frames), now)); d != "" {
				t.Fatalf("(-database +recorded):\n%s", d[:min(len(d), 2000)])
			}
		})
	}
}

// listing are the files of a directory with their content and times.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		out = append(out, fmt.Sprint(path, info.Size(), info.Mode(), info.ModTime().UnixNano()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFilesAreLeftAlone: a database of an agent that does not run, one that was killed with a log
// and one in a directory that cannot be written are read, and no file changes or appears.
func TestFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	db := open(t, path, "wal")
	do(t, db, schema+"INSERT INTO session VALUES ('s','one',1)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, "killed.db")
	db = open(t, killed, "wal")
	do(t, db, schema+"INSERT INTO session VALUES ('s','two',1)")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(killed + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "copy.db"+suffix), b, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.Close()
	before := listing(t, dir)
	rec := recordtest.New()
	s, stop := run(t, rec, filepath.Join(dir, "*.db"))
	wait(t, s)
	stop()
	if d := cmp.Diff(before, listing(t, dir)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	var titles []string
	for _, one := range rec.Streams() {
		titles = append(titles, strings.TrimSpace(one.Text()))
	}
	slices.Sort(titles)
	const row = `line {"table":"session","row":{"id":"s","title":%q,"created":1}}`
	if d := cmp.Diff([]string{fmt.Sprintf(row, "one"), fmt.Sprintf(row, "two"), fmt.Sprintf(row, "two")}, titles); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHostileDatabases: huge values, damaged pages, other files and other schemas are problem rows
// and nothing worse.
func TestHostileDatabases(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	db := open(t, path, "delete")
	do(t, db, schema)
	do(t, db, "INSERT INTO part VALUES ('long','s',1,'{}',zeroblob(8000000)), ('odd','s',2,'no json',x'ff00fe'), (NULL,1.5,'x',9e999,NULL)")
	for i := range 300 {
		do(t, db, "INSERT INTO session VALUES (?,hex(zeroblob(300)),1)", fmt.Sprint("s", i))
	}
	_ = db.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		bad := slices.Clone(good)
		for range 1 + rnd.IntN(200) {
			bad[16+rnd.IntN(min(len(bad)-16, 160<<10))] = byte(rnd.IntN(256))
		}
		if i%4 == 3 {
			bad = bad[:rnd.IntN(len(bad))]
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("bad%d.db", i)), bad, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"text.db": "no database", "empty.db": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	view := open(t, filepath.Join(dir, "view.db"), "delete")
	do(t, view, "CREATE VIEW part AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS id FROM n; CREATE TABLE session (other, rowid TEXT) ")
	_ = view.Close()
	rec := recordtest.New()
	_, stop := run(t, rec, filepath.Join(dir, "*.db"))
	all := rec.Want(t, "rows", func(all []recordtest.Stream) bool {
		n, whole, text := 0, false, false
		for _, s := range all {
			if len(s.Frames) > 0 {
				n++
			}
			whole = whole || s.ID.Origin == path && len(s.Frames) == 303
			text = text || filepath.Base(s.ID.Origin) == "text.db" && len(s.Frames) > 0
		}
		return n > 10 && whole && text
	})
	stop()
	for _, s := range all {
		for _, f := range s.Frames {
			if len(f.Data) > 2<<20 || f.Reason == "" && !json.Valid(f.Data) {
				t.Fatalf("%s: %d bytes, %.200q", s.ID.Origin, len(f.Data), f.Data)
			}
		}
		if s.ID.Origin == path && (len(s.Frames) != 303 || s.Frames[0].Reason == "" && !slices.ContainsFunc(s.Frames, func(f frame.Frame) bool { return f.Reason == reasonLong && f.Dropped > 8e6 })) {
			t.Errorf("%d rows", len(s.Frames))
		}
		if filepath.Base(s.ID.Origin) == "text.db" && !strings.Contains(s.Text(), ReasonDatabase) {
			t.Errorf("no problem: %s", s.Text())
		}
	}
}

// TestReadableAgain: a database that could not be read is read once it can be, also if its files look as they did: a permission that
// is granted, or a disk that answers again, shows in none of their times and sizes.
func TestReadableAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path, "delete")
	do(t, db, schema+"INSERT INTO session VALUES ('s','one',1)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	write := func(b []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(b, 0)
			err = errors.Join(err, f.Close(), os.Chtimes(path, long, long))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(make([]byte, len(good)))
	rec := recordtest.New()
	_, stop := run(t, rec, path)
	defer stop()
	has := func(text string) func([]recordtest.Stream) bool {
		return func(all []recordtest.Stream) bool { return len(all) == 1 && strings.Contains(all[0].Text(), text) }
	}
	rec.Want(t, "the problem", has(ReasonDatabase))
	write(good)
	rec.Want(t, "the row", has(`"title":"one"`))
}

// TestLinksThatLeaveTheTree: whoever writes into the folder of an agent has the sidecar read no database, and no log, that lies
// elsewhere; a link within the folder is read.
func TestLinksThatLeaveTheTree(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "of-another-user.db")
	db := open(t, secret, "wal")
	do(t, db, schema)
	do(t, db, "INSERT INTO part VALUES ('id','s',1,'{}','what another user wrote')")
	dir := t.TempDir()
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(secret, "a.db")
	link(secret, "b.db")
	link(secret+"-wal", "b.db-wal")
	own := open(t, filepath.Join(dir, "own.db"), "delete")
	do(t, own, schema)
	do(t, own, "INSERT INTO part VALUES ('id','s',1,'{}','own')")
	link("own.db", "c.db")
	if err := os.WriteFile(filepath.Join(dir, "d.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rec := recordtest.New()
	_, stop := run(t, rec, filepath.Join(dir, "*.db"))
	all := rec.Want(t, "the own rows, and two problems", func(all []recordtest.Stream) bool {
		rows, problems := 0, 0
		for _, s := range all {
			rows += strings.Count(s.Text(), `"own"`)
			problems += strings.Count(s.Text(), ReasonDatabase)
		}
		return rows == 2 && problems == 2
	})
	stop()
	for _, s := range all {
		if strings.Contains(s.Text(), "another user wrote") {
			t.Errorf("%s: %s", s.ID.Origin, s.Text())
		}
	}
}

// BenchmarkUnchanged is the cost of a database that has not changed.
func BenchmarkUnchanged(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.db")
	db := open(b, path, "wal")
	do(b, db, schema)
	rec := recordtest.New()
	s, stop := run(b, rec, path)
	wait(b, s)
	stop()
	d := s.open[path]
	for b.Loop() {
		if _, err := d.poll(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestUnless: rows that another table has are not read, whichever of the two is written first. A database without that table has
// all its rows.
func TestUnless(t *testing.T) {
	for name, other := range map[string]string{
		"there": "CREATE TABLE older (id TEXT PRIMARY KEY)", "missing": "CREATE TABLE x (id TEXT)", "without the column": "CREATE TABLE older (name TEXT)",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			db := open(t, path, "WAL")
			do(t, db, other)
			do(t, db, "CREATE TABLE newer (id TEXT PRIMARY KEY, session TEXT, created INTEGER)")
			if name == "there" {
				do(t, db, "INSERT INTO older VALUES ('a')")
			}
			do(t, db, "INSERT INTO newer VALUES ('a', 's', 1), ('b', 's', 2)")
			rec := recordtest.New()
			s, err := New(Config{
				Paths: []string{path}, Interval: spec.Duration(5 * time.Millisecond), MaxRow: 1 << 20,
				Tables: []Table{{Table: "newer", Order: "created", Unless: "older"}},
			}, source.Env{Name: "s", Format: "f"})
			if err != nil {
				t.Fatal(err)
			}
			stop := rec.Run(t, s)
			defer stop()
			wait(t, s)
			do(t, db, "INSERT INTO newer VALUES ('c', 's', 3)")
			if name == "there" {
				do(t, db, "INSERT INTO older VALUES ('d')")
			}
			do(t, db, "INSERT INTO newer VALUES ('d', 's', 4)")
			wait(t, s)
			want := "newer a newer b newer c newer d"
			if name == "there" {
				want = "newer b newer c"
			}
			if got := strings.Join(slices.Sorted(maps.Keys(fold(rec.Streams()[0].Frames))), " "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
