package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/internal/redact/seeded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Invented secrets, put together so that no scanner takes this file for a leak.
var (
	aws    = "AKIA" + "ABCDEFGHIJ234567"
	openai = "sk-" + "proj-0123456789abcdefABCDEF"
	github = "ghp_" + strings.Repeat("aB3", 12)
	slack  = "xoxb-" + "1234567890-abcdefghij"
	jwt    = "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0.c2lnbmF0dXJlLWJ5dGVz"
	google = "AIza" + strings.Repeat("Sy0", 11) + "ab"
	gitlab = "glpat-" + "0123456789abcdefghij"
	hf     = "hf_" + strings.Repeat("abcDEF", 6)
	npm    = "npm_" + strings.Repeat("abcDEF", 6)
	bearer = "0123456789abcdef.ghijkl"
	pem    = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123456789\nabcdefghijklmnop==\n-----END RSA PRIVATE KEY-----"
	secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

func secrets() map[string]string {
	return map[string]string{
		"aws_access_key": aws, "api_key": openai, "github_token": github, "slack_token": slack, "jwt": jwt, "google_api_key": google,
		"gitlab_token": gitlab, "huggingface_token": hf, "npm_token": npm, "private_key": pem,
	}
}

func newRedactor(t testing.TB, s Settings) *Redactor {
	t.Helper()
	r, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// quoted is how encoders write a string.
func quoted(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBuiltinSecretsAreFound has each builtin secret in text, in a JSON string, as
// a key, in JSON in a string in a string.
func TestBuiltinSecretsAreFound(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	for name, s := range secrets() {
		for where, in := range map[string]string{
			"alone":       s,
			"text":        "first " + s + " last",
			"line":        "first\n" + s + "\nlast",
			"assignment":  "TOKEN=" + s + " go",
			"json":        quoted(t, map[string]any{"a": "x", "t": s, "z": 1}),
			"sentence":    quoted(t, []string{"it is " + s + ", they say"}),
			"lines":       quoted(t, map[string]any{"a": "x\n" + s + "\ny"}),
			"key":         quoted(t, map[string]any{s: 1}),
			"nested":      quoted(t, map[string]any{"arguments": quoted(t, map[string]any{"t": "\"" + s + "\""})}),
			"twice":       quoted(t, map[string]any{"a": quoted(t, map[string]any{"b": quoted(t, []string{"x", s})})}),
			"string":      quoted(t, "x "+s),
			"damaged":     `{"a":"x","t":` + quoted(t, s+" and so on")[:len(quoted(t, s))+3],
			"two":         quoted(t, []string{"x"}) + "\n" + quoted(t, []string{s}),
			"code":        quoted(t, map[string]any{"c": "{ let t = '" + s + "' }"}),
			"windows end": quoted(t, map[string]any{"c": "C:\\" + s}),
		} {
			out := string(r.Bytes([]byte(in)))
			if !strings.Contains(out, "[redacted:"+name+"]") {
				t.Errorf("%s in %s: %s", name, where, out)
			}
			core := strings.TrimSuffix(strings.TrimPrefix(s, pem[:36]), "x")
			if strings.Contains(out, s) || strings.Contains(out, quoted(t, core)[1:12]) && len(core) > 12 {
				t.Errorf("%s in %s is still there: %s", name, where, out)
			}
			if json.Valid([]byte(in)) && !json.Valid([]byte(out)) {
				t.Errorf("%s in %s is not JSON any more: %s", name, where, out)
			}
		}
	}
}

func TestRedaction(t *testing.T) {
	s := Settings{
		Builtin: true, Keys: []string{"password", "api-key", "x"},
		Patterns: []Pattern{{"employee", `\bE-[0-9]{6}\b`}, {"card", `\b[0-9]{16}\b`}, {"quoted", `say "[a-z]+"`}, {"line", `^top secret.*`}},
	}
	r := newRedactor(t, s)
	for in, want := range map[string]string{
		`{"a":"x \u0026 ` + aws + `"}`:                               `{"a":"x & [redacted:aws_access_key]"}`,
		"is " + github + strings.Repeat("aB3", 200) + "-+/=.~x, see": "is [redacted:github_token], see", // longer than its expression looks
		"twilio_token = " + strings.Repeat("0123abcd", 4):            "twilio_token = [redacted:twilio_token]",
		`{"password":"hunter2","a":1}`:                               `{"password":"[redacted:password]","a":1}`,
		`{"PassWord" : "hunter2" , "a":1}`:                           `{"PassWord" : "[redacted:password]" , "a":1}`,
		`{"password":12345}`:                                         `{"password":"[redacted:password]"}`,
		`{"password":null,"api-key":""}`:                             `{"password":null,"api-key":""}`,
		`{"password":{"a":["b,}",1]},"c":2}`:                         `{"password":"[redacted:password]","c":2}`,
		`{"password":["a"]}`:                                         `{"password":["a"]}`[:12] + `"[redacted:password]"}`,
		`{"password":true}`:                                          `{"password":"[redacted:password]"}`,
		`{"passwords":"kept","my_password":"hunter2"}`:               `{"passwords":"kept","my_password":"[redacted:password]"}`,
		`{"a":"password","b":"x: y"}`:                                `{"a":"password","b":"x: y"}`,
		`{"args":"{\"password\":\"a\\\"b\",\"n\":1}"}`:               `{"args":"{\"password\":\"[redacted:password]\",\"n\":1}"}`,
		`{"pass\u0077ord":"hunter2"}`:                                `{"pass\u0077ord":"[redacted:password]"}`,
		`{"a":"E-123456 and E-1234567"}`:                             `{"a":"[redacted:employee] and E-1234567"}`,
		`{"a":1234567812345678,"b":1234567812345678.5}`:              `{"a":"[redacted:card]","b":"[redacted:card].5"}`,
		`{"a":"\nE-123456\t\u00e9\ud83d\ude00\ud800"}`:               `{"a":"\n[redacted:employee]\té😀\ud800"}`,
		`{"a":"they say \"hush\" now"}`:                              `{"a":"they [redacted:quoted] now"}`,
		`{"a":"top secret: \"x\", {\"y\"}","b":"\u00e9"}`:            `{"a":"[redacted:line]","b":"\u00e9"}`,
		`top secret`:             `[redacted:line]`,
		`plain`:                  `plain`,
		`see \u0041 there`:       `see \u0041 there`,
		`see "my_token":"short"`: `see "my_token":"short"`,
		`{"u":"postgres://joe:pa%20ss@db.example:5432/x"}`:                  `{"u":"postgres://joe:[redacted:url_password]@db.example:5432/x"}`,
		`{"u":"https:\/\/joe:secretpw@db.example\/x"}`:                      `{"u":"https://joe:[redacted:url_password]@db.example/x"}`,
		`{"u":"see a/b https://joe:secretpw@db.example/x"}`:                 `{"u":"see a/b https://joe:[redacted:url_password]@db.example/x"}`,
		`{"u":"https://example.com:8080/a@b?c=d:e"}`:                        `{"u":"https://example.com:8080/a@b?c=d:e"}`,
		`{"h":"Authorization: Bearer ` + bearer + `"}`:                      `{"h":"Authorization: Bearer [redacted:credentials]"}`,
		`{"h":"Bearer ` + bearer + `"}`:                                     `{"h":"Bearer [redacted:credentials]"}`,
		"h: Bearer\t" + bearer:                                              "h: Bearer\t[redacted:credentials]",
		"h: bearer  \n " + bearer:                                           "h: bearer  \n [redacted:credentials]",
		`{"h":["curl -H 'authorization: basic ` + bearer + `'"]}`:           `{"h":["curl -H 'authorization: basic [redacted:credentials]'"]}`,
		"a://" + strings.Repeat("x", 1015) + "://joe:secretpw@db.example/x": "a://" + strings.Repeat("x", 1015) + "://joe:[redacted:url_password]@db.example/x",
		"a://" + strings.Repeat("x", 3000) + "://joe:secretpw@db.example/x": "a://" + strings.Repeat("x", 3000) + "://joe:[redacted:url_password]@db.example/x",
		`{"SecretAccessKey":"` + secret + `"}`:                              `{"SecretAccessKey":"[redacted:aws_secret_key]"}`,
		`export AWS_SECRET_ACCESS_KEY=` + secret:                            `export AWS_SECRET_ACCESS_KEY=[redacted:aws_secret_key]`,
		`{"a":"` + aws + ` ` + github + `"}`:                                `{"a":"[redacted:aws_access_key] [redacted:github_token]"}`,
		`{"x":"` + aws + `"}`:                                               `{"x":"[redacted:x]"}`,
		`\n` + aws:                                                          `\n[redacted:aws_access_key]`,
	} {
		got := string(r.Bytes([]byte(in)))
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if json.Valid([]byte(in)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON any more: %s", in, got)
		}
		if again := string(r.Bytes([]byte(got))); again != got {
			t.Errorf("%s\nthe second time: %s", got, again)
		}
	}
}

// TestWords: a secret is no part of a longer word.
func TestWords(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	for before, found := range map[string]bool{"azAZ09_": false, "`{@[/:-^": true} {
		for _, c := range before {
			in := "is " + string(c) + aws
			if out := r.String(in); (out != in) != found {
				t.Errorf("%s: %s", in, out)
			}
		}
	}
}

// TestInnocentBytesAreNotTouched has text without secrets: it is not copied.
func TestInnocentBytesAreNotTouched(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true, Keys: []string{"password"}, Patterns: []Pattern{{"plan", `top secret`}, {"home", `~acme`}}})
	for _, in := range []string{
		`{"a":"{\"name\":\"other\",\"value\":1}"}`, `{"my_token":"short","a":1}`, `{"my_token":"","a":1}`, `{"` + strings.Repeat("p", longestKey-len("token")+1) + `token":"wJ2kQ9dX7mB4"}`, `{"a":"{\"my_token\":\"short\",\"b\":1}"}`, `{"text":"one\ntwo and \u00e9"}`, `{"password_hint":1,"xpassword":2,"a":"password: x","name":"password","values":3}`,
		"", "{}", `{"id":"0f8fad5b-d9cb-469f-a165-70867728950e","t":"2026-03-01T10:00:00.123456Z"}`,
		`{"path":"/home/user/disk-0123456789abcdefghij/task-0123456789abcdefghijkl"}`,
		`{"text":"the password: is a word, and risk-assessment-of-the-year-2026 too"}`,
		strings.Repeat("-", 200), `{"md":"|-----------------|-------------|\n"}`, `{"b64":"` + strings.Repeat("QUJDZXlK", 500) + `"}`,
		`{"call_id":"call_0123456789abcdefghijklmn","model":"gpt-5.1-2026","u":"https://example.com/a/b:c/d?e=f"}`,
		strings.Repeat("-eyJ", 1<<18), "https://a:" + strings.Repeat("://", 1<<18), // in no time that grows with the square
		`{"mail":"somebody.of.us@example.com","cmd":"git clone git@github.com:owner/repository.git"}`,
	} {
		b := []byte(in)
		if out := r.Bytes(b); len(out) > 0 && &out[0] != &b[0] {
			t.Errorf("%s was copied: %s", in, out)
		}
		if r.mayHold(b) {
			t.Errorf("%s is a candidate", in)
		}
	}
	b := []byte(strings.Repeat(`{"role":"assistant","content":"All is well with https://example.com/."}`+"\n", 100))
	if n := testing.AllocsPerRun(100, func() { r.Bytes(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHashesJoin(t *testing.T) {
	a := newRedactor(t, Settings{Builtin: true, Keys: []string{"token"}, HashSalt: []byte("salt")})
	b := newRedactor(t, Settings{Builtin: true, HashSalt: []byte("other")})
	hash := regexp.MustCompile(`\[redacted:[a-z_]+:([0-9a-f]{16})\]`)
	find := func(r *Redactor, in string) string {
		m := hash.FindStringSubmatch(string(r.Bytes([]byte(in))))
		if m == nil {
			t.Fatalf("%s: %s", in, r.Bytes([]byte(in)))
		}
		return m[1]
	}
	one := find(a, aws)
	for _, in := range []string{`{"token":"` + aws + `"}`, `{"a":"{\"b\":\"` + aws + `\"}"}`, "x " + aws + " y"} {
		if got := find(a, in); got != one {
			t.Errorf("%s: %s, want %s", in, got, one)
		}
	}
	if find(b, aws) == one || find(a, github) == one {
		t.Error("the hash depends neither on salt nor value")
	}
}

func TestFindingsAreCounted(t *testing.T) {
	got := make(map[string]int)
	r := newRedactor(t, Settings{Builtin: true, Keys: []string{"pw"}, Count: func(rule string, n int) { got[rule] += n }})
	r.Bytes([]byte(`{"pw":"x","a":"` + aws + ` ` + aws + `"}`))
	r.Bytes([]byte(`{}`))
	if fmt.Sprint(got) != "map[aws_access_key:2 pw:1]" {
		t.Error(got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, s := range []Settings{{Keys: []string{""}}, {Patterns: []Pattern{{"a", "("}}}, {Patterns: []Pattern{{"a", "x*"}}}} {
		if _, err := New(s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	r, err := New(Settings{})
	if r != nil || err != nil {
		t.Errorf("nothing to redact: %v %v", r, err)
	}
	if got := r.String(string(r.Bytes([]byte(aws)))); got != aws || r.Sink(nil) != nil || r.Recorder(nil) != nil {
		t.Error("a nil redactor does something")
	}
}

func TestLiterals(t *testing.T) {
	for expr, want := range map[string]string{
		`\bE-[0-9]{6}\b`: "", `acme-[0-9]+`: "acme-", `(?i)acme`: "", `a|acme`: "", `(acme)+x`: "acme", `[0-9]+ kronor`: " kronor", `(`: "", `abc[0-9]+`: "abc", `ab[0-9]+`: "", `abc[0-9]def`: "abc",
	} {
		if got := string(literalOf(expr)); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// TestSearchMissesNothing has secrets at every offset of a step, in random text.
func TestSearchMissesNothing(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	rng := rand.New(rand.NewPCG(1, 2))
	const around = " \"\\:,{}\nabcXYZ019./-_+=é"
	for name, s := range secrets() {
		for range 2000 {
			noise := func() string {
				b := make([]byte, rng.IntN(40))
				for i := range b {
					b[i] = around[rng.IntN(len(around))]
				}
				return string(b)
			}
			in := noise() + " " + s + " " + noise()
			if !bytes.Contains(r.Bytes([]byte(in)), []byte("[redacted:")) {
				t.Fatalf("%s: %q", name, in)
			}
		}
	}
}

// scattered are parts of secrets, and texts that may be around them.
var scattered = []string{
	"sk-", "sK-", "eyJ", "AKIA", "ASIA", "AIza", "ghp_", "gho_", "ghx_", "github_pat_", "glpat-", "hf_", "npm_", "xoxb-", "access", "ACCESS", "success",
	"secret_access_key", "SecretAccessKey", "=", "KEY-----", "-----BEGIN PRIVATE KEY-----\n", "bearer ", "Basic ", "BEARER ", "://", `:\/\/`, `:\\/\\/`,
	"joe:pw@", "@", ":", "/", `\`, "!", " ", "\"", "\n", `\n`, "a", "Z9", "-", "_", ".", "é", "0123456789abcdef", "ABCDEFGHIJKLMNOP",
	"abcdefghijklmnopqrstuvwxyz0123456789ABCD", `"my_token`, `":"wJ2kQ9dX7mB4"`, "cookie\"", strings.Repeat("x", 1000),
}

// searchEverywhere is find without the windows: it compares every byte with the prefixes that begin with the same three.
func searchEverywhere(d *detector, b []byte) bool {
	for at := range max(len(b)-2, 0) {
		for _, s := range d.prefilter.lists[d.prefilter.first[hash(three(b[at:]))]].all {
			if !s.in(b[at:]) {
				continue
			}
			if s.rule == escape {
				if escapedLetter(b[at:]) {
					return true
				}
				continue
			}
			r := &d.rules[s.rule]
			if r.word && wordBefore(b[:at]) || r.ahead != nil && r.ahead(b[at:]) > 0 {
				continue
			}
			if m, ok := r.match(b, at); ok && (r.closer == nil || r.closer(b, m.to-1)) {
				return true
			}
		}
	}
	return false
}

// TestPrefilterMissesNothing compares the prefilter with a search at every byte: the windows
// lead to every secret, whichever way the pairs fall.
func TestPrefilterMissesNothing(t *testing.T) {
	d, err := newDetector(kinds())
	if err != nil {
		t.Fatal(err)
	}
	rng, yes := rand.New(rand.NewPCG(1, 3)), 0
	for range 20_000 {
		var in []byte
		for range 1 + rng.IntN(12) {
			in = append(in, scattered[rng.IntN(len(scattered))]...)
			for range rng.IntN(4) * rng.IntN(8) {
				in = append(in, byte('!'+rng.IntN('~'-'!')))
			}
		}
		want := searchEverywhere(d, in)
		if d.holds(in) != want {
			t.Fatalf("%q has a secret: %v", in, want)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 {
		t.Errorf("%d have secrets: that shows little", yes)
	}
}

// TestSecretsAtTheEndOfAStretch has every seeded secret at each place around the end of a stretch that is searched at once.
func TestSecretsAtTheEndOfAStretch(t *testing.T) {
	d, err := newDetector(kinds())
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Repeat("- ", stretch)
	for _, k := range seeded.Kinds() {
		for at := stretch - 2*step - len(k.Text); at <= stretch+step; at++ {
			if in := before[:max(at, 0)] + k.Text + " "; !d.holds([]byte(in)) {
				t.Errorf("%s is not found at %d", k.Name, at)
			}
		}
	}
}

// TestPrefilterSeldomStops has texts of agents, in which is no secret. The search is fast because one step of ten has the halves of a window, and one of
// thirty a window, and because a stop is short.
func TestPrefilterSeldomStops(t *testing.T) {
	d, err := newDetector(kinds())
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 1 << 20}).Session(0)
	for name, c := range map[string]struct {
		in                            []byte
		halves, stops, near, compared float64
	}{"lines": {lines, 0.079, 0.034, 0.027, 0.0004}, "events": {events(1000), 0.06, 0.028, 0.021, 0}} {
		in := c.in
		whole := len(in) - len(in)%step
		halves, stops, near, compared := 0, 0, 0, 0
		for i := 0; i < whole; i += stretch {
			halves += bits.OnesCount64(d.prefilter.hits(in[:whole], i))
		}
		for from, to := range d.prefilter.places(in) {
			stops++
			near += to - from
			for at := from; at < to; at++ {
				if d.prefilter.begins(in, at) {
					compared += len(d.prefilter.at(in, at))
				}
			}
		}
		share := func(n, of int) float64 { return float64(n) / float64(of) }
		if share(halves, len(in)/step) > c.halves || share(stops, len(in)/step) > c.stops || share(near, len(in)) > c.near || share(compared, len(in)) > c.compared {
			t.Errorf("of %d steps of %s %d have halves of a window, %d have one, and %d bytes are looked at, with %d prefixes: a new kind is the last of kinds, and begins with bytes that such texts seldom have", len(in)/step, name, halves, stops, near, compared)
		}
	}
}

// TestKindsAreChecked: a kind that the prefilter cannot find is an error, and none that is slow.
func TestKindsAreChecked(t *testing.T) {
	for expr, want := range map[string]string{
		`acme_[0-9]{8}`: "", `acme(`: "missing closing", `ac[0-9]*`: "less than three known bytes", `(?:acme|a)c*`: "less than three known bytes",
		`[0-9A-Za-z_-]{8}`: "too many", `[0-9A-F][0-9A-F][0-9A-F]acme`: "",
	} {
		_, err := newDetector([]kind{{name: "acme", expr: expr}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

func FuzzPrefilter(f *testing.F) {
	d, err := newDetector(kinds())
	if err != nil {
		f.Fatal(err)
	}
	for i := range scattered {
		f.Add([]byte(scattered[i] + scattered[(i+7)%len(scattered)] + scattered[(i*5)%len(scattered)]))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if got, want := d.holds(in), searchEverywhere(d, in); got != want {
			t.Errorf("%q has a secret: %v, want %v", in, got, want)
		}
	})
}

func FuzzBytes(f *testing.F) {
	f.Add([]byte(`{"password":"x","a":["` + aws + `",{"b":"{\"password\":1}"}]}`))
	f.Add([]byte(`{"a":"\ud83d\ude00 \ud800 \u12 \\" ` + jwt))
	f.Add([]byte(`"` + pem))
	r, err := New(Settings{Builtin: true, Keys: []string{"password"}, Patterns: []Pattern{{"any", `[a-c]{3}`}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		out := r.Bytes(in)
		if !bytes.Equal(before, in) {
			t.Fatal("the input was written to")
		}
		if json.Valid(in) && !json.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// TestEveryKindIsFound makes up a secret by the expression of each kind, and looks for it.
func TestEveryKindIsFound(t *testing.T) {
	d, err := newDetector(kinds())
	if err != nil {
		t.Fatal(err)
	}
	rng, names := rand.New(rand.NewPCG(5, 6)), make(map[string]bool)
	for i := range d.rules {
		r := &d.rules[i]
		if r.closer != nil { // no secret
			continue
		}
		names[r.name] = true
		re, err := syntax.Parse(r.expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range 20 {
			in := "x = " + strings.Repeat("1", r.backMin) + made(rng, re) + " y"
			d.find([]byte(in), func(m match) bool {
				if m.name == r.name || m.order < i {
					found++
					return false
				}
				return true
			})
		}
		if !slices.Contains([]string{"jwt", "credentials", "password", "url_password", "api_key"}, r.name) && found < 10 { // the others have tests of their own
			t.Errorf("%s (%s): %d of 20 are found", r.name, r.expr, found)
		}
	}
	if len(names) < 120 {
		t.Errorf("%d kinds", len(names))
	}
}

// made is a text that an expression matches.
func made(rng *rand.Rand, re *syntax.Regexp) string {
	repeated := func(low, high int) string {
		var b strings.Builder
		for range low + rng.IntN(high-low+1) {
			b.WriteString(made(rng, re.Sub[0]))
		}
		return b.String()
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for {
			at := 2 * rng.IntN(len(re.Rune)/2)
			low, high := re.Rune[at], min(re.Rune[at+1], '~')
			if low < ' ' && high >= ' ' {
				low = '0'
			}
			if low <= high && low >= '\t' {
				return string(low + rune(rng.IntN(int(high-low+1))))
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture:
		return made(rng, re.Sub[0])
	case syntax.OpStar:
		return repeated(0, 3)
	case syntax.OpPlus:
		return repeated(8, 12)
	case syntax.OpQuest:
		return repeated(0, 1)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return repeated(max(re.Min, 8), max(re.Min, 8)+8)
		}
		return repeated(re.Min, re.Max)
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(made(rng, sub))
		}
		return b.String()
	case syntax.OpAlternate:
		return made(rng, re.Sub[rng.IntN(len(re.Sub))])
	}
	return ""
}

// TestSeededKindsAreFound has every seeded kind in text and in JSON in JSON, which stays JSON.
func TestSeededKindsAreFound(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	for _, k := range seeded.Kinds() {
		for where, in := range map[string]string{
			"text": "see " + k.Text + " there", "json": quoted(t, map[string]any{"content": "see " + k.Text + " there"}), "alone": k.Text,
			"nested": quoted(t, map[string]any{"arguments": quoted(t, map[string]any{"command": "x " + k.Text})}), "lines": "a\n" + k.Text + "\nb",
		} {
			out := string(r.Bytes([]byte(in)))
			if strings.Contains(out, k.Secret) || !strings.Contains(out, "[redacted:") {
				t.Errorf("%s in %s: %s", k.Name, where, out)
			}
			if json.Valid([]byte(in)) && !json.Valid([]byte(out)) {
				t.Errorf("%s in %s is not JSON any more: %s", k.Name, where, out)
			}
		}
	}
	if n := len(seeded.Kinds()); n < 59 {
		t.Errorf("%d kinds", n)
	}
}

// TestCodeIsNotTakenForSecrets reads Go's own sources: there are no secrets in them but for
// their tests.
func TestCodeIsNotTakenForSecrets(t *testing.T) {
	d, err := newDetector(kinds())
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("the sources of Go are not there: ", err)
	}
	size, found := 0, 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || size > 80e6 {
			return err
		}
		if e.IsDir() && e.Name() == "testdata" {
			return filepath.SkipDir
		}
		if e.IsDir() || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(b)
		d.find(b, func(m match) bool {
			if m.from < m.to {
				found++
				t.Logf("%s: %s: %.60q", filepath.Base(path), m.name, b[m.from:m.to])
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d findings in %d MB", found, size/1e6); found > 5 {
		t.Errorf("%d findings in %d MB", found, size/1e6)
	}
}

// TestAttributesOfOTLP: an attribute of OTLP is a name and a value apart; its secret is found by its name.
func TestAttributesOfOTLP(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true, Keys: []string{"employee"}})
	for in, want := range map[string]string{
		`{"key":"db.password","value":{"stringValue":"hunter2secret"}}`:        `{"key":"db.password","value":{"stringValue":"[redacted:password]"}}`,
		`{"key":"api_key", "value": {"string_value": "9f8e7d6c5b4a39281706"}}`: `{"key":"api_key", "value": {"string_value": "[redacted:password]"}}`,
		`{"key":"employee","value":{"stringValue":"Ann"}}`:                     `{"key":"employee","value":{"stringValue":"[redacted:employee]"}}`,
		`{"key":"employee","value":{"intValue":"17"}}`:                         `{"key":"employee","value":{"intValue":"[redacted:employee]"}}`,
		`{"name":"employee","value":"Ann"}`:                                    `{"name":"employee","value":"[redacted:employee]"}`,
		`{"key":"input_tokens","value":{"stringValue":"1234"}}`:                `{"key":"input_tokens","value":{"stringValue":"1234"}}`,
		`{"key":"employee","value":{"other":"Ann","stringValue":"Bob"}}`:       `{"key":"employee","value":{"other":"Ann","stringValue":"Bob"}}`,
	} {
		if got := string(r.Bytes([]byte(in))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}
