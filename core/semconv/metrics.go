package semconv

// Metric is an instrument: a histogram when it has bounds, else a counter.
type Metric struct {
	Name, Unit, Description string
	Bounds                  []float64 // upper ones of its buckets
}

// Metrics are the instruments of a profile. One without a name is not in that
// version of the convention, or has been replaced.
type Metrics struct {
	Chat       Metric // s, of a request to a model
	FirstChunk Metric // s, from a request to the first piece of its answer
	PerChunk   Metric // s, between a piece of the answer and the one before
	Run        Metric // s, of an invocation of an agent
	Workflow   Metric // s, of a workflow; without a name it counts as an agent
	Tool       Metric // s, of a call that is no delegation
	Delegation Metric // s, of a call that makes another agent run

	// Tokens of a response by KeyTokenType: input includes cached tokens, output
	// the reasoning.
	Tokens Metric
	// The counters that replace Tokens in the new repository; input and output as
	// above, the others are parts of them.
	Input, Output, CacheRead, CacheWrite, Reasoning Metric

	// Classes are tokens by KeyTokenClass, whose values are exclusive: the items of a bill.
	// An instrument of ours, in both versions.
	Classes Metric
}

// The keys of metrics alone.
const (
	KeyTokenType  = "gen_ai.token.type"
	KeyTokenClass = "earshot.token.class"
)

// seconds are the convention's bounds for durations. Our own instruments have four more,
// because tools and delegations of agents last minutes and hours.
var seconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}

var long = append(seconds[:len(seconds):len(seconds)], 300, 900, 3600, 14400)

// runs and workflows are the bounds of the new repository for these two.
var (
	runs      = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	workflows = []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
)

// tokens are the convention's bounds for token counts.
var tokens = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

var metrics141 = Metrics{
	Chat:       Metric{"gen_ai.client.operation.duration", "s", "Duration of requests to models.", seconds},
	FirstChunk: Metric{"gen_ai.client.operation.time_to_first_chunk", "s", "Time from a request to the first piece of its answer.", seconds},
	PerChunk:   Metric{"gen_ai.client.operation.time_per_output_chunk", "s", "Time between two pieces of an answer.", seconds},
	Run:        Metric{"earshot.invoke_agent.duration", "s", "Duration of invocations of agents.", long},
	Tool:       Metric{"earshot.execute_tool.duration", "s", "Duration of tool calls.", long},
	Delegation: Metric{"earshot.delegation.duration", "s", "Duration of delegations: calls that have another agent at work.", long},
	Tokens:     Metric{"gen_ai.client.token.usage", "{token}", "Tokens of responses. Input contains what was cached, output the reasoning.", tokens},
	Classes:    Metric{"earshot.tokens", "{token}", "Tokens by class; the classes exclude each other.", nil},
}

var metricsDev = Metrics{
	Chat:       Metric{"gen_ai.client.inference.duration", "s", "Duration of requests to models.", seconds},
	FirstChunk: Metric{"gen_ai.client.inference.time_to_first_chunk", "s", "Time from a request to the first piece of its answer.", seconds},
	PerChunk:   Metric{"gen_ai.client.inference.time_per_output_chunk", "s", "Time between two pieces of an answer.", seconds},
	Run:        Metric{"gen_ai.invoke_agent.duration", "s", "Duration of invocations of agents.", runs},
	Workflow:   Metric{"gen_ai.invoke_workflow.duration", "s", "Duration of workflows.", workflows},
	Tool:       Metric{"gen_ai.execute_tool.duration", "s", "Duration of tool calls.", seconds},
	Delegation: Metric{"earshot.delegation.duration", "s", "Duration of delegations: calls that have another agent at work.", long},
	Input:      Metric{"gen_ai.client.inference.usage.input_tokens", "{token}", "Tokens that models were given, cached ones among them.", nil},
	Output:     Metric{"gen_ai.client.inference.usage.output_tokens", "{token}", "Tokens that models gave, reasoning among them.", nil},
	CacheRead:  Metric{"gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", "Input tokens that were read from a cache.", nil},
	CacheWrite: Metric{"gen_ai.client.inference.usage.cache_write.input_tokens", "{token}", "Input tokens that were written to a cache.", nil},
	Reasoning:  Metric{"gen_ai.client.inference.usage.reasoning.output_tokens", "{token}", "Output tokens that were reasoning.", nil},
	Classes:    Metric{"earshot.tokens", "{token}", "Tokens by class; the classes exclude each other.", nil},
}

// Metrics are the profile's instruments.
func (p *Profile) Metrics() Metrics {
	if p.dev {
		return metricsDev
	}
	return metrics141
}
