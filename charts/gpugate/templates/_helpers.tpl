{{- /* Written by `make generate` from webhook/generate/chart. */ -}}
{{- define "gpugate.fullname" -}}
{{ trimAll "-" (trunc 40 (ternary (ternary (ternary (print (replace "." "-" $.Release.Name) "-gpugate") (replace "." "-" $.Release.Name) (empty (contains "gpugate" (replace "." "-" $.Release.Name)))) (print "gpugate-" (replace "." "-" $.Release.Name)) (empty (regexMatch "^[0-9]" (replace "." "-" $.Release.Name)))) $.Values.fullnameOverride (empty $.Values.fullnameOverride))) }}
{{- end }}
{{- define "gpugate.serviceAccountName" -}}
{{ if $.Values.serviceAccount.name }}{{ $.Values.serviceAccount.name }}{{ else }}{{ if $.Values.serviceAccount.create }}{{ include "gpugate.fullname" $ }}{{ else }}default{{ end }}{{ end }}
{{- end }}
{{- define "gpugate.image" -}}
{{ $.Values.image.repository }}{{ if $.Values.image.digest }}@{{ $.Values.image.digest }}{{ else }}:{{ $.Values.image.tag }}{{ end }}
{{- end }}
{{- define "gpugate.policyFile" -}}
{{ toPrettyJson (set (set (deepCopy $.Values.policy) "apiVersion" "gpugate.dev/v1") "kind" "PolicyConfig") }}
{{- end }}
{{- define "gpugate.judgedNamespaces" -}}
{{ range $_, $name := $.Values.webhooks.onlyNamespaces }}{{ if not (has $name (append (dig "excluded_namespaces" (list) $.Values.policy) $.Release.Namespace)) }}{{ $name }} {{ end }}{{ end }}
{{- end }}
{{- define "gpugate.ownTaints" -}}
{{ range $name, $taints := dig "platform" "taints" (dict) $.Values.policy }}{{ range $_, $taint := $taints }}|{{ replace "*" ".*" (replace "." "\\\\." (get $taint "key")) }}{{ end }}{{ end }}
{{- end }}
{{- define "gpugate.ownResources" -}}
{{ range $_, $name := dig "platform" "accelerators" "resources" (list) $.Values.policy }}|{{ replace "*" ".*" (replace "." "\\\\." $name) }}{{ end }}{{ range $_, $class := dig "platform" "accelerators" "device_classes" (list) $.Values.policy }}|deviceclass\\.resource\\.kubernetes\\.io/{{ replace "*" ".*" (replace "." "\\\\." $class) }}{{ end }}
{{- end }}
