package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// recordWord is the first word of each text that comes over OTLP.
const recordWord = "record"

// telemetry sends log records of an agent over OTLP. A request is sent until it is accepted, so one of
// which the answer was lost is recorded twice: a record is one row all the same.
type telemetry struct {
	addr    string
	records atomic.Int64 // that were accepted: texts "record 0" and so on
	refused error        // why the last one that was not accepted was not
}

// send sends records until the context ends. The one that it sends then may be stored although nobody
// accepted it.
func (t *telemetry) send(ctx context.Context) {
	// Connections are not kept: those to a sidecar that was killed are of no use.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for ; ctx.Err() == nil; t.records.Add(1) {
		for {
			err := post(client, "http://"+t.addr+"/v1/logs", logRecord(int(t.records.Load())), nil)
			if err == nil {
				break
			}
			if t.refused = err; ctx.Err() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// post sends JSON once, and returns why it was not accepted.
func post(client http.Client, url, body string, header http.Header) error {
	q, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range header {
		q.Header[name] = values
	}
	if q.Header.Get("Content-Type") == "" {
		q.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, said)
	}
	return err
}

// logRecord is a request with the answer of one model response, in the names of the GenAI conventions. Now
// and then it has a secret in its text.
func logRecord(n int) string {
	text := fmt.Sprint(recordWord, " ", n)
	if n%10 == 9 {
		text += " " + secret
	}
	at := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * 100 * time.Millisecond).UnixNano()
	return fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"harbour-desk"}}]},"scopeLogs":[{"scope":{"name":"harbour"},"logRecords":[{`+
		`"timeUnixNano":"%d","observedTimeUnixNano":"%d","eventName":"gen_ai.client.inference.operation.details","traceId":"%032x","spanId":"%016x","attributes":[`+
		`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.response.id","value":{"stringValue":"resp-%d"}},{"key":"gen_ai.request.model","value":{"stringValue":"small-2"}},`+
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"33"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"7"}},`+
		`{"key":"gen_ai.output.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"assistant"}},`+
		`{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":%q}}]}}]}}}]}}]}}}]}]}]}]}`+"\n",
		at, at, 1+n/50, 1+n, n, text)
}
