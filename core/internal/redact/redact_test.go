package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
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
		`{"password":"hunter2","a":1}`:                    `{"password":"[redacted:password]","a":1}`,
		`{"PassWord" : "hunter2" , "a":1}`:                `{"PassWord" : "[redacted:password]" , "a":1}`,
		`{"password":12345}`:                              `{"password":"[redacted:password]"}`,
		`{"password":null,"api-key":""}`:                  `{"password":null,"api-key":""}`,
		`{"password":{"a":["b,}",1]},"c":2}`:              `{"password":"[redacted:password]","c":2}`,
		`{"password":["a"]}`:                              `{"password":["a"]}`[:12] + `"[redacted:password]"}`,
		`{"password":true}`:                               `{"password":"[redacted:password]"}`,
		`{"passwords":"kept","my_password":"kept"}`:       `{"passwords":"kept","my_password":"kept"}`,
		`{"a":"password","b":"x: y"}`:                     `{"a":"password","b":"x: y"}`,
		`{"args":"{\"password\":\"a\\\"b\",\"n\":1}"}`:    `{"args":"{\"password\":\"[redacted:password]\",\"n\":1}"}`,
		`{"pass\u0077ord":"hunter2"}`:                     `{"pass\u0077ord":"[redacted:password]"}`,
		`{"a":"E-123456 and E-1234567"}`:                  `{"a":"[redacted:employee] and E-1234567"}`,
		`{"a":1234567812345678,"b":1234567812345678.5}`:   `{"a":"[redacted:card]","b":"[redacted:card].5"}`,
		`{"a":"\nE-123456\t\u00e9\ud83d\ude00\ud800"}`:    `{"a":"\n[redacted:employee]\té😀\ud800"}`,
		`{"a":"they say \"hush\" now"}`:                   `{"a":"they [redacted:quoted] now"}`,
		`{"a":"top secret: \"x\", {\"y\"}","b":"\u00e9"}`: `{"a":"[redacted:line]","b":"\u00e9"}`,
		`top secret`: `[redacted:line]`,
		`plain`:      `plain`,
		`{"u":"postgres://joe:pa%20ss@db.example:5432/x"}`:        `{"u":"postgres://joe:[redacted:url_password]@db.example:5432/x"}`,
		`{"u":"https:\/\/joe:secretpw@db.example\/x"}`:            `{"u":"https://joe:[redacted:url_password]@db.example/x"}`,
		`{"u":"see a/b https://joe:secretpw@db.example/x"}`:       `{"u":"see a/b https://joe:[redacted:url_password]@db.example/x"}`,
		`{"u":"https://example.com:8080/a@b?c=d:e"}`:              `{"u":"https://example.com:8080/a@b?c=d:e"}`,
		`{"h":"Authorization: Bearer ` + bearer + `"}`:            `{"h":"Authorization: Bearer [redacted:credentials]"}`,
		`{"h":"Bearer ` + bearer + `"}`:                           `{"h":"Bearer [redacted:credentials]"}`,
		"h: Bearer\t" + bearer:                                    "h: Bearer\t[redacted:credentials]",
		"h: bearer  \n " + bearer:                                 "h: bearer  \n [redacted:credentials]",
		`{"h":["curl -H 'authorization: basic ` + bearer + `'"]}`: `{"h":["curl -H 'authorization: basic [redacted:credentials]'"]}`,
		`{"SecretAccessKey":"` + secret + `"}`:                    `{"SecretAccessKey":"[redacted:aws_secret_key]"}`,
		`export AWS_SECRET_ACCESS_KEY=` + secret:                  `export AWS_SECRET_ACCESS_KEY=[redacted:aws_secret_key]`,
		`{"a":"` + aws + ` ` + github + `"}`:                      `{"a":"[redacted:aws_access_key] [redacted:github_token]"}`,
		`{"x":"` + aws + `"}`:                                     `{"x":"[redacted:x]"}`,
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

// TestInnocentBytesAreNotTouched has text without secrets: it is not copied.
func TestInnocentBytesAreNotTouched(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true, Keys: []string{"password"}})
	for _, in := range []string{
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
		`\bE-[0-9]{6}\b`: "", `acme-[0-9]+`: "acme-", `(?i)acme`: "", `a|acme`: "", `(acme)+x`: "acme", `[0-9]+ kronor`: " kronor", `(`: "",
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
	"abcdefghijklmnopqrstuvwxyz0123456789ABCD", strings.Repeat("x", 1000),
}

// searchEverywhere is candidate without the windows: it looks at every run.
func searchEverywhere(p *prefilter, b []byte) bool {
	for from := 0; from < len(b); from++ {
		if to := runEnd(b, from); to > from {
			if to-from >= shortest && (candidateAfter(b[:from], to-from) || p.candidateIn(b[from:to])) {
				return true
			}
			from = to
		}
	}
	for url := 0; url+4 < len(b); url++ {
		if b[url] != ':' || !slashes(b[url+1:url+4]) {
			continue
		}
		colon := false
		for q := url + 3; q < len(b) && inURL(b[q]) && q < url+maxURL; q++ {
			if b[q] == '@' && colon {
				return true
			}
			colon = colon || b[q] == ':'
		}
	}
	return false
}

// TestPrefilterMissesNothing compares the prefilter with a search of every run: the windows
// lead to every candidate, whichever way the pairs fall.
func TestPrefilterMissesNothing(t *testing.T) {
	p, rng, yes := newPrefilter(builtin()), rand.New(rand.NewPCG(1, 3)), 0
	const n = 40_000
	for range n {
		var in []byte
		for range 1 + rng.IntN(12) {
			in = append(in, scattered[rng.IntN(len(scattered))]...)
			for range rng.IntN(4) * rng.IntN(8) {
				in = append(in, byte('!'+rng.IntN('~'-'!')))
			}
		}
		want := searchEverywhere(p, in)
		if p.candidate(in) != want {
			t.Fatalf("%q is a candidate: %v", in, want)
		}
		if want {
			yes++
		}
	}
	if yes < n/10 || yes > n*9/10 {
		t.Errorf("%d of %d are candidates: that shows little", yes, n)
	}
}

func FuzzPrefilter(f *testing.F) {
	p := newPrefilter(builtin())
	for i := range scattered {
		f.Add([]byte(scattered[i] + scattered[(i+7)%len(scattered)] + scattered[(i*5)%len(scattered)]))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if got, want := p.candidate(in), searchEverywhere(p, in); got != want {
			t.Errorf("%q is a candidate: %v, want %v", in, got, want)
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

// TestRareBytesAreBright checks the table of marks: candidateIn only looks at bright bytes.
func TestRareBytesAreBright(t *testing.T) {
	for _, b := range builtin() {
		for _, m := range b.marks {
			if m.rare != 0 && (m.offset() < 0 || bright(uint64(m.rare)) == 0) {
				t.Errorf("%s: the rare byte %q of %q is not bright, or not in it", b.name, m.rare, m.text)
			}
		}
	}
}
