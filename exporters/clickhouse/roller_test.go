package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
)

// TestHoursOfAPass: which hours a pass computes, from the facts of the hours alone: those with rows that are old enough, and newer than the
// last time; not those of which rows have expired.
func TestHoursOfAPass(t *testing.T) {
	const settle = 10 * time.Minute
	now := time.Unix(1000*3600+1800, 0)
	hour := func(ago int) time.Time { return now.Truncate(time.Hour).Add(-time.Duration(ago) * time.Hour) }
	never := time.Unix(0, 0)
	// of is an hour whose last row came so long ago, and that was computed up to that long ago, zero: never.
	of := func(hoursAgo int, last, until time.Duration) touchedHour {
		h := touchedHour{hour(hoursAgo), now.Add(-last), never, never, never}
		if until > 0 {
			h.until, h.at, h.oldest = now.Add(-until), now.Add(-until), now.Add(-until)
		}
		return h
	}
	expired := of(30, time.Hour, 2*time.Hour)
	expired.oldest = now.Add(-25 * time.Hour)
	first := expired // it was not computed when its rows were there
	first.at = never
	many := make([]touchedHour, hoursAtOnce+1)
	var twelve []string
	for i := range many {
		many[i] = of(40+i, time.Hour, 0)
		if i < hoursAtOnce {
			twelve = append(twelve, fmt.Sprint(40+i))
		}
	}
	tired := errors.New("tired")
	ttl := TTL{Messages: testDay, Spans: testDay}
	for _, c := range []struct {
		name  string
		of    computed
		ttl   TTL
		hours []touchedHour
		there bool
		sleep error
		want  []string
		done  int
	}{
		{name: "nothing is new", of: messageRollup},
		{name: "an hour", of: messageRollup, hours: []touchedHour{of(3, time.Hour, 0)}, want: []string{"compute 3", "note 3", "all"}, done: 1},
		{name: "that is computed", of: messageRollup, hours: []touchedHour{of(1, time.Hour, time.Minute)}},
		{name: "up to its last row", of: messageRollup, hours: []touchedHour{of(1, time.Hour, time.Hour)}, want: []string{"compute 1", "note 1", "all"}, done: 1},
		{name: "that still arrives", of: messageRollup, hours: []touchedHour{of(1, time.Minute, 0)}},
		{name: "to the moment", of: messageRollup, hours: []touchedHour{of(1, settle, 0)}},
		{name: "an old one arrives", of: messageRollup, hours: []touchedHour{of(1, time.Minute, 0), of(3, time.Minute, 0)}, want: []string{"all"}},
		{name: "with rows that have expired", of: messageRollup, ttl: ttl, hours: []touchedHour{expired, of(3, time.Hour, 0)}, want: []string{"compute 3", "note 30 3", "all"}, done: 2},
		{name: "with nothing else", of: messageRollup, ttl: ttl, hours: []touchedHour{expired}, want: []string{"note 30", "all"}, done: 1},
		{name: "for the first time", of: messageRollup, ttl: ttl, hours: []touchedHour{first}, want: []string{"compute 30", "note 30", "all"}, done: 1},
		{name: "kept for ever", of: messageRollup, hours: []touchedHour{expired}, want: []string{"compute 30", "note 30", "all"}, done: 1},
		{name: "kept no longer than the rows", of: usageFacts, ttl: ttl, hours: []touchedHour{expired}, there: true, want: []string{"compute 30", "note 30", "all"}, done: 1},
		{name: "facts", of: usageFacts, hours: []touchedHour{of(3, time.Hour, 0)}, want: []string{"first 3", "note 3", "all"}, done: 1},
		{name: "more than at once", of: messageRollup, hours: many, want: []string{"compute " + strings.Join(twelve, " "), "note " + strings.Join(twelve, " "), "compute 52", "note 52", "all"}, done: len(many)},
		{name: "and it is ended", of: messageRollup, hours: many, sleep: tired, want: []string{"compute " + strings.Join(twelve, " "), "note " + strings.Join(twelve, " ")}, done: hoursAtOnce},
		{name: "with those that follow", of: pauseRollup, hours: []touchedHour{of(24, time.Hour, 0)}, want: []string{"compute 24 23 22 21 20 19 18 17 16 15 14 13", "note 24 23 22 21 20 19 18 17 16 15 14 13", "compute 12 11 10 9 8 7 6 5 4 3 2 1", "note 12 11 10 9 8 7 6 5 4 3 2 1", "compute 0", "note 0", "all"}, done: 25},
	} {
		conn, server := scriptedConn(func(sql string) (out [][]any, err error) {
			switch {
			case strings.HasPrefix(sql, "SELECT toUnixTimestamp64Micro"):
				return [][]any{{now.UnixMicro()}}, nil
			case strings.HasPrefix(sql, "SELECT count()"):
				return [][]any{{map[bool]int{true: 1}[c.there]}}, nil
			}
			for _, h := range c.hours {
				out = append(out, []any{h.hour, h.last, h.until, h.at, h.oldest})
			}
			return out, nil
		})
		p := roller{c: conn, s: Schema{TTL: c.ttl}, settle: settle, sleep: func(context.Context, time.Duration) error { return c.sleep }}
		done, err := p.pass(t.Context(), c.of)
		if done != c.done || !errors.Is(err, c.sleep) {
			t.Errorf("%s: %d hours, %v", c.name, done, err)
		}
		var got []string
		for _, sql := range server.statements() {
			what := "compute"
			switch {
			case strings.Contains(sql, "VALUES ('all "):
				got = append(got, "all")
				continue
			case strings.HasPrefix(sql, "INSERT INTO `earshot`.`rollup_hours`"):
				what = "note"
			case strings.Contains(sql, "row_ver") && !strings.Contains(sql, "newest"):
				what = "first"
			}
			list := regexp.MustCompile(`IN \((toDateTime\(\d+, 'UTC'\)(?:, toDateTime\(\d+, 'UTC'\))*)\)`).FindStringSubmatch(sql)
			if list == nil {
				t.Fatalf("%s: no hours in %s", c.name, sql)
			}
			for _, at := range regexp.MustCompile(`\d+`).FindAllString(list[1], -1) {
				var unix int64
				_, _ = fmt.Sscan(at, &unix)
				what += fmt.Sprint(" ", hour(0).Sub(time.Unix(unix, 0)).Hours())
			}
			got = append(got, what)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestFailuresAreSaid: an answer of the server that is an error is that of the work that asked, whichever of its statements it is; and nothing
// else is done behind it.
func TestFailuresAreSaid(t *testing.T) {
	now := time.Unix(1000*3600, 0)
	answers := func(sql string) [][]any {
		switch {
		case strings.HasPrefix(sql, "SELECT toUnixTimestamp64M") && strings.Contains(sql, "max(until)"):
			return [][]any{{now.UnixMilli(), now.Add(-time.Hour).UnixMilli()}}
		case strings.HasPrefix(sql, "SELECT toUnixTimestamp64Milli"):
			return [][]any{{now.UnixMilli()}}
		case strings.HasPrefix(sql, "SELECT toUnixTimestamp64Micro"):
			return [][]any{{now.UnixMicro()}}
		case strings.HasPrefix(sql, "SELECT max(generation)"):
			return [][]any{{3, "[]", now.Add(-time.Hour)}}
		case strings.Contains(sql, "turn_facts"):
			return [][]any{{2, 1}}
		case strings.HasPrefix(sql, "SELECT t.hour"):
			return [][]any{{now.Add(-3 * time.Hour), now.Add(-time.Hour), time.Unix(0, 0), time.Unix(0, 0), time.Unix(0, 0)}}
		case strings.HasPrefix(sql, "SELECT table, partition_id"):
			return [][]any{{"messages", "20260301", false}, {"messages", "20260228", true}}
		case strings.HasPrefix(sql, "SELECT table, name"):
			return [][]any{{"messages", "a", "20260301", 10}, {"spans", "b", "20260302", 10}}
		case strings.HasPrefix(sql, "SELECT argMax(after_ms"):
			return [][]any{{1}}
		case strings.HasPrefix(sql, "SELECT toString(source)"):
			return [][]any{{"tap", "a", 5}}
		case strings.HasPrefix(sql, "SELECT toString(tenant), found"):
			return [][]any{{"default", now, now, "tool", "", "", "", "", "", "", ""}}
		case strings.HasPrefix(sql, "SELECT toString(budget)"):
			return [][]any{{"b", "a", now, now, ""}}
		case strings.HasPrefix(sql, "SELECT DISTINCT t, s"):
			return [][]any{{"default", "s"}}
		case strings.HasPrefix(sql, "SELECT table, groupArray(name)"):
			return [][]any{{"dead_letters", []string{"tenant", "session_id"}}}
		case strings.HasPrefix(sql, "SELECT DISTINCT toString(dl_id)"), strings.HasPrefix(sql, "SELECT toString(uuid)"), strings.HasPrefix(sql, "SELECT DISTINCT toString(toDate"):
			return [][]any{{"0a"}}
		case strings.HasPrefix(sql, "SELECT DISTINCT substring"):
			return [][]any{{"a text that is long enough to be looked for"}}
		case strings.HasPrefix(sql, "SELECT arrayMap(n"):
			return [][]any{{[]uint64{0}}}
		case sql == "SELECT version()":
			return [][]any{{"26.7"}}
		case strings.HasPrefix(sql, "SELECT version, name"):
			return [][]any{{baseline, "views", ""}}
		case strings.HasPrefix(sql, "SELECT name, engine_full"):
			return [][]any{{"messages", "ReplacingMergeTree"}}
		case strings.HasPrefix(sql, "DESCRIBE"):
			return [][]any{{"content", "String", "", "", "", "", ""}}
		case strings.HasPrefix(sql, "SELECT model"):
			return [][]any{{"gull", now, 1.0, 1.0, 1.0, 1.0, 1.0, map[string]float64{"batch": 0.5}, 200_000, 2.0, 1.5, ofProgram}}
		}
		return [][]any{{1}}
	}
	sleep := func(context.Context, time.Duration) error { return nil }
	if c, server := scriptedConn(nil); doubleOf(c).Supersede(t.Context(), nil) != nil || server.statements() != nil {
		t.Error("rows of no format are superseded")
	}
	for name, do := range map[string]func(*Conn) error{
		"a rollup":  func(c *Conn) error { _, err := roller{c: c, sleep: sleep}.pass(t.Context(), messageRollup); return err },
		"facts":     func(c *Conn) error { _, err := roller{c: c, sleep: sleep}.pass(t.Context(), usageFacts); return err },
		"days":      func(c *Conn) error { _, err := c.mergeSettled(t.Context(), 0, sleep); return err },
		"size":      func(c *Conn) error { _, _, err := c.dropOldest(t.Context(), 0); return err },
		"how large": func(c *Conn) error { _, err := c.Size(t.Context()); return err },
		"attribution": func(c *Conn) error {
			_, err := attributor{c: c, sleep: sleep}.pass(t.Context(), time.Time{})
			return err
		},
		"rules": func(c *Conn) error {
			_, err := ApplyRules(t.Context(), c, Schema{}, someRules)
			return err
		},
		"the same rules": func(c *Conn) error { _, err := HasRules(t.Context(), c, Schema{}, someRules); return err },
		"prices and thresholds": func(c *Conn) error {
			x := doubleOf(c)
			return errors.Join(x.writePrices(t.Context()), x.writeThresholds(t.Context()))
		},
		"conversations": func(c *Conn) error {
			return attributor{c: c}.conversationsOf(t.Context(), now, anyDerivable())
		},
		"what is stored": func(c *Conn) error {
			x := doubleOf(c)
			x.ready = true
			_, err := x.Reached(t.Context())
			return err
		},
		"changes": func(c *Conn) error { _, err := new(changing).alerts(t.Context(), doubleOf(c), now); return err },
		"alerts":  func(c *Conn) error { return new(budgeting).load(t.Context(), doubleOf(c)) },
		"sessions": func(c *Conn) error {
			_, err := (&eraser{conn: c}).Find(t.Context(), export.Selection{User: "u"})
			return err
		},
		"what is to be erased": func(c *Conn) error {
			_, err := (&eraser{conn: c}).Count(t.Context(), &export.Erasure{Sessions: make([]export.Session, 1), Match: "x"})
			return err
		},
		"texts": func(c *Conn) error {
			_, err := (&eraser{conn: c}).Texts(t.Context(), &export.Erasure{Sessions: make([]export.Session, 1)})
			return err
		},
		"the schema": func(c *Conn) error {
			if _, err := (Schema{}).applied(t.Context(), c); err != nil {
				return err
			}
			if _, err := (Schema{}).adjust(t.Context(), c); err != nil {
				return err
			}
			_, err := (Schema{}).byHand(t.Context(), c)
			return err
		},
		"the server":      func(c *Conn) error { _, err := serverVersion(t.Context(), c); return err },
		"the identity":    func(c *Conn) error { _, err := c.Identity(t.Context()); return err },
		"superseded rows": func(c *Conn) error { return doubleOf(c).Supersede(t.Context(), []string{"agno"}) },
	} {
		asked := 0
		c, _ := scriptedConn(func(sql string) ([][]any, error) { asked++; return answers(sql), nil })
		if err := do(c); err != nil || asked == 0 {
			t.Errorf("%s: %d statements, %v", name, asked, err)
		}
		for n := range asked {
			for _, failed := range []error{errors.New("it fails"), errRow, errEnd} {
				asked := 0
				c, _ := scriptedConn(func(sql string) ([][]any, error) {
					if asked++; asked == n+1 {
						return answers(sql), failed
					}
					return answers(sql), nil
				})
				if err := do(c); !errors.Is(err, failed) {
					t.Errorf("%s, statement %d: %v, want %v", name, n+1, err, failed)
				}
				if name != "prices and thresholds" && asked != n+1 {
					t.Errorf("%s goes on behind statement %d", name, n+1)
				}
			}
		}
	}
}

// TestRests: work rests for as long as it has kept the store busy, or several times as long.
func TestRests(t *testing.T) {
	now := time.Unix(1000*3600, 0)
	never := time.Unix(0, 0)
	for name, c := range map[string]struct {
		do   func(*Conn, func(context.Context, time.Duration) error) error
		want time.Duration
	}{
		"a rollup": {func(c *Conn, sleep func(context.Context, time.Duration) error) error {
			_, err := roller{c: c, sleep: sleep}.pass(t.Context(), messageRollup)
			return err
		}, 8 * time.Second},
		"days": {func(c *Conn, sleep func(context.Context, time.Duration) error) error {
			_, err := c.mergeSettled(t.Context(), 0, sleep)
			return err
		}, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, _ := scriptedConn(func(sql string) ([][]any, error) {
				switch {
				case strings.HasPrefix(sql, "SELECT toUnixTimestamp64Mi"):
					return [][]any{{now.UnixMicro()}}, nil
				case strings.HasPrefix(sql, "SELECT t.hour"):
					return [][]any{{never, never, never, never, never}}, nil
				case strings.HasPrefix(sql, "SELECT table, partition_id"):
					return [][]any{{"messages", "20260301", false}}, nil
				}
				time.Sleep(time.Second)
				return nil, nil
			})
			var rested []time.Duration
			if err := c.do(conn, func(_ context.Context, d time.Duration) error { rested = append(rested, d); return nil }); err != nil || !slices.Equal(rested, []time.Duration{c.want}) {
				t.Errorf("%s: rested %s, %v", name, rested, err)
			}
		})
	}
}
