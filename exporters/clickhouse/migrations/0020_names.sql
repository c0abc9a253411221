{{define "columns"}}
    MODIFY COLUMN SessionId String MATERIALIZED if(SpanAttributes['earshot.session.id'] != '', SpanAttributes['earshot.session.id'], SpanAttributes['gen_ai.conversation.id'])
        COMMENT 'earshot.session.id; gen_ai.conversation.id of rows from before that, and of other senders',
    MODIFY COLUMN Model LowCardinality(String) MATERIALIZED if(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model'])
        COMMENT 'gen_ai.response.model: the model that answered; gen_ai.request.model where only the one that was asked for is known'{{end -}}
-- Columns of otel_traces that follow what spans say. No view is redefined: v_spans reads
-- both by their names, and only a comment of it changes.
ALTER TABLE {{table "otel_traces"}}{{onCluster}}{{template "columns"}};

ALTER TABLE {{name "otel_traces"}}{{onCluster}}{{template "columns"}};

ALTER TABLE {{view "v_spans"}}{{onCluster}}
    COMMENT COLUMN model 'gen_ai.response.model, or gen_ai.request.model where only that is known'
