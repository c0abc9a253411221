package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// counts are the tokens that a provider bills: all input, cached or not, and all output,
// reasoning included.
type counts struct{ in, out int }

// usage has the fields of the three providers' interfaces.
type usage struct {
	Input      count `json:"input_tokens"`
	Output     count `json:"output_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	Iterations []pass
}

// pass is a part of a response that is billed by itself. The counts above leave out that of a summary of the context and that of
// another model, as the provider documents.
type pass struct {
	Type       string
	In         count `json:"input_tokens"`
	Out        count `json:"output_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
}

// beside are the tokens of those passes.
func (u *usage) beside() (c counts) {
	for _, p := range u.Iterations {
		if p.Type == "compaction" || p.Type == "advisor_message" {
			c.in, c.out = c.in+int(p.In+p.CacheRead+p.CacheWrite), c.out+int(p.Out)
		}
	}
	return c
}

// count is a number, which some gateways write as a text.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(b), `"`))
	*c = count(n)
	return err
}

// envelope has the places of the usage in a frame: at its top, in the message that begins, in
// the response that ends, in Groq's own part, and in Moonshot's choice. The type is that of a request over a WebSocket.
type envelope struct {
	Type     string
	Usage    *usage
	Message  struct{ Usage *usage }
	Response struct {
		Usage *usage
		Body  struct{ Usage *usage } // of a batch's output
	}
	Custom  string                                   `json:"custom_id"`
	Result  struct{ Message struct{ Usage *usage } } // of Anthropic's
	Groq    struct{ Usage *usage }                   `json:"x_groq"`
	Choices []struct{ Usage *usage }
}

// TestTokensAreTheProvidersOwn: over every recording of a provider's interface, the tokens of
// the messages are the last ones of the provider, read by the plainest means. The packages of
// the transcripts' decoders have their own comparisons.
func TestTokensAreTheProvidersOwn(t *testing.T) {
	seen := 0
	for _, format := range []string{"anthropic-sse", "openai-chat", "openai-responses"} {
		cases, err := filepath.Glob(fixture(t, format+"/testdata") + "/*/frames.jsonl")
		if err != nil || len(cases) == 0 {
			t.Fatal(format, err)
		}
		for _, path := range cases {
			if strings.Contains(path, "/other_paths/") { // embeddings and the like are no responses of an agent's model
				continue
			}
			var want, got, last, beside counts // one response of a recording has passes
			read(t, path, func(line []byte) {
				var f struct{ Kind, Data string }
				if err := json.Unmarshal(line, &f); err != nil {
					t.Fatal(err)
				}
				texts := []string{f.Data}
				if strings.HasPrefix(f.Data, "{\"id\": \"batch_req_") { // a response a line
					texts = strings.Split(f.Data, "\n")
				}
				for _, text := range texts {
					var e envelope
					_ = json.Unmarshal([]byte(text), &e)                                                                // [DONE] is no JSON
					if f.Kind == "request" || e.Message.Usage != nil || e.Type == "response.create" || e.Custom != "" { // another response begins
						want, last = counts{want.in + last.in, want.out + last.out}, counts{}
					}
					if f.Kind == "request" {
						return
					}
					places := []*usage{e.Usage, e.Message.Usage, e.Response.Usage, e.Response.Body.Usage, e.Result.Message.Usage, e.Groq.Usage}
					for _, c := range e.Choices {
						places = append(places, c.Usage)
					}
					for _, u := range places {
						if u != nil {
							// Each is of all until then, corrected; of a gateway that counts reasoning apart, only the total has it.
							last.in = cmp.Or(int(u.Input+u.CacheRead+u.CacheWrite+u.Prompt), last.in)
							last.out = cmp.Or(max(int(u.Output+u.Completion), int(u.Total-u.Input-u.Prompt)), last.out)
							beside.in, beside.out = max(beside.in, u.beside().in), max(beside.out, u.beside().out)
						}
					}
				}
			})
			want = counts{want.in + last.in + beside.in, want.out + last.out + beside.out}
			read(t, filepath.Join(filepath.Dir(path), "want.jsonl"), func(line []byte) {
				var m struct {
					Input      int `json:"input_tokens"`
					Output     int `json:"output_tokens"`
					CacheRead  int `json:"cache_read_tokens"`
					CacheWrite int `json:"cache_write_tokens"`
					Reasoning  int `json:"reasoning_tokens"`
				}
				if err := json.Unmarshal(line, &m); err != nil {
					t.Fatal(err)
				}
				got.in += m.Input + m.CacheRead + m.CacheWrite
				got.out += m.Output + m.Reasoning
			})
			if got != want {
				t.Errorf("%s: %+v, the provider counted %+v", path, got, want)
			}
			if want.out > 0 {
				seen++
			}
		}
	}
	if seen < 12 {
		t.Errorf("%d recordings have tokens", seen)
	}
}

func read(t *testing.T, path string, line func([]byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		line(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}
