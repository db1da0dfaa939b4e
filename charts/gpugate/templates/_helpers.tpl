{{/*
The base name of all objects.

A release name can contain dots and start with a digit; the name of a Service cannot (RFC 1035 label).
The limit is 63 characters; 40 leave enough for suffixes such as "-certificates".
*/}}
{{- define "gpugate.fullname" -}}
{{- $name := replace "." "-" .Release.Name }}
{{- $chart := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if regexMatch "^[0-9]" $name }}
{{- $name = printf "%s-%s" $chart $name }}
{{- else if not (contains $chart $name) }}
{{- $name = printf "%s-%s" $name $chart }}
{{- end }}
{{- $name | trunc 40 | trimAll "-" }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "gpugate.labels" -}}
{{- $version := dict "app.kubernetes.io/version" .Chart.AppVersion }}
{{- include "gpugate.selectorLabels" . | fromYaml | mergeOverwrite (dict) .Values.commonLabels $version | toYaml }}
{{- end }}

{{/* Labels and annotations of an object without annotations of its own. */}}
{{- define "gpugate.metadata" -}}
labels:
  {{- include "gpugate.labels" . | nindent 2 }}
{{- with .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Annotations of an object.

`root`: the context of the chart; `own`: the annotations that replace common ones.
*/}}
{{- define "gpugate.annotations" -}}
{{- mergeOverwrite (dict) .root.Values.commonAnnotations .own | toYaml }}
{{- end }}

{{/*
Labels of a Pod.

`root`: the context of the chart; `component`: webhook, audit or hook.
*/}}
{{- define "gpugate.podLabels" -}}
{{- $component := dict "app.kubernetes.io/component" .component }}
{{- $own := include "gpugate.selectorLabels" .root | fromYaml }}
{{- mergeOverwrite (dict) .root.Values.commonLabels .root.Values.podLabels $own $component | toYaml }}
{{- end }}

{{/* Labels that identify the objects of this release. */}}
{{- define "gpugate.selectorLabels" -}}
app.kubernetes.io/name: gpugate
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels that select the Pods of the webhook. */}}
{{- define "gpugate.webhookSelectorLabels" -}}
{{ include "gpugate.selectorLabels" . }}
app.kubernetes.io/component: webhook
{{- end }}

{{/* ServiceAccount of the webhook. */}}
{{- define "gpugate.serviceAccountName" -}}
{{- if .Values.serviceAccount.name }}
{{- .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}
{{- include "gpugate.fullname" . }}
{{- else -}}
default
{{- end }}
{{- end }}

{{/* Image of every container. */}}
{{- define "gpugate.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest -}}
@{{ .Values.image.digest }}
{{- else -}}
:{{ .Values.image.tag }}
{{- end }}
{{- end }}

{{/* Secret with the serving certificate, unless the webhook issues it itself. */}}
{{- define "gpugate.tlsSecretName" -}}
{{- if eq .Values.certificates.mode "provided" }}
{{- .Values.certificates.secretName }}
{{- else }}
{{- include "gpugate.fullname" . }}-tls
{{- end }}
{{- end }}

{{/* ConfigMap with the CA certificates of clients; empty if clients are not authenticated. */}}
{{- define "gpugate.clientCaConfigMapName" -}}
{{- if .Values.clientAuthentication.caBundle }}
{{- include "gpugate.fullname" . }}-client-ca
{{- else }}
{{- .Values.clientAuthentication.configMapName }}
{{- end }}
{{- end }}

{{/* Minimum number of Pods. */}}
{{- define "gpugate.replicas" -}}
{{ ternary .Values.autoscaling.minReplicas .Values.replicaCount .Values.autoscaling.enabled | int }}
{{- end }}

{{/* The policy file. `mergeOverwrite` would drop empty and false values, such as `mode: off` in YAML 1.1. */}}
{{- define "gpugate.policyFile" -}}
{{- $policy := omit (deepCopy .Values.policy) "shadow" "bundle" }}
{{- $_ := set $policy "apiVersion" "gpugate.dev/v1" }}
{{- $_ := set $policy "kind" "PolicyConfig" }}
{{- toPrettyJson $policy }}
{{- end }}

{{/* The shadow policy file, or empty. */}}
{{- define "gpugate.shadowPolicyFile" -}}
{{- with dig "shadow" nil .Values.policy }}
{{- $policy := deepCopy . }}
{{- $_ := set $policy "apiVersion" "gpugate.dev/v1" }}
{{- $_ := set $policy "kind" "PolicyConfig" }}
{{- toPrettyJson $policy }}
{{- end }}
{{- end }}

{{/* Name and region of the cluster; empty if unknown. */}}
{{- define "gpugate.clusterName" -}}
{{- default (dig "platform" "cluster" "name" "" .Values.policy) .Values.cluster.name }}
{{- end }}

{{- define "gpugate.clusterRegion" -}}
{{- default (dig "platform" "cluster" "region" "" .Values.policy) .Values.cluster.region }}
{{- end }}

{{/* Arguments that describe the cluster. */}}
{{- define "gpugate.clusterArgs" -}}
{{- with .Values.cluster.name }}
- {{ printf "--cluster-name=%s" . | quote }}
{{- end }}
{{- with .Values.cluster.region }}
- {{ printf "--cluster-region=%s" . | quote }}
{{- end }}
{{- range $key, $value := .Values.cluster.labels }}
- {{ printf "--cluster-label=%s=%s" $key $value | quote }}
{{- end }}
{{- end }}

{{/* Reference of the policy bundle, or empty. */}}
{{- define "gpugate.bundle" -}}
{{- dig "bundle" "reference" "" .Values.policy }}
{{- end }}

{{/* The policy file in the containers. */}}
{{- define "gpugate.policyFilePath" -}}
{{- if include "gpugate.bundle" . -}}
/etc/gpugate/bundle/current/policy.yaml
{{- else -}}
/etc/gpugate/policy/policy.yaml
{{- end }}
{{- end }}

{{/* The container that pulls the policy bundle. It has no token of the ServiceAccount. */}}
{{- define "gpugate.bundleContainer" -}}
- name: bundle
  {{- include "gpugate.containerSettings" . | nindent 2 }}
  args:
    - bundle
    - pull
    - {{ include "gpugate.bundle" . | quote }}
    - /etc/gpugate/bundle/current
    {{- if include "gpugate.bundleHasKey" . }}
    - --key=/etc/gpugate/bundle-key/cosign.pub
    {{- end }}
    {{- if include "gpugate.bundleCaName" . }}
    - --ca=/etc/gpugate/bundle-ca/ca.crt
    {{- end }}
  {{- if dig "bundle" "pullSecret" "" .Values.policy }}
  env:
    - name: DOCKER_CONFIG
      value: /etc/gpugate/bundle-login
  {{- end }}
  resources:
    requests:
      cpu: 50m
      memory: 96Mi
    limits:
      memory: 256Mi
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    - name: bundle
      mountPath: /etc/gpugate/bundle
    {{- if include "gpugate.bundleHasKey" . }}
    - name: bundle-key
      mountPath: /etc/gpugate/bundle-key
      readOnly: true
    {{- end }}
    {{- if include "gpugate.bundleCaName" . }}
    - name: bundle-ca
      mountPath: /etc/gpugate/bundle-ca
      readOnly: true
    {{- end }}
    {{- if dig "bundle" "pullSecret" "" .Values.policy }}
    - name: bundle-login
      mountPath: /etc/gpugate/bundle-login
      readOnly: true
    {{- end }}
{{- end }}

{{- define "gpugate.bundleHasKey" -}}
{{- if or (dig "bundle" "key" "" .Values.policy) (dig "bundle" "keySecret" "" .Values.policy) }}true{{- end }}
{{- end }}

{{/* Name of the ConfigMap with the certificate authorities of the registry, or empty: those of the image. */}}
{{- define "gpugate.bundleCaName" -}}
{{- if dig "bundle" "ca" "" .Values.policy }}
{{- include "gpugate.fullname" . }}-bundle-ca
{{- else }}
{{- dig "bundle" "caConfigMap" "" .Values.policy }}
{{- end }}
{{- end }}

{{/* Mounts of the container that uses the policy file. */}}
{{- define "gpugate.policyMounts" -}}
{{- if include "gpugate.bundle" . -}}
- name: bundle
  mountPath: /etc/gpugate/bundle
  readOnly: true
- name: token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- else -}}
- name: policy
  mountPath: /etc/gpugate/policy
  readOnly: true
{{- end }}
{{- end }}

{{/* Volumes of the policy file. With a bundle, only the container that uses it has the token of the ServiceAccount. */}}
{{- define "gpugate.policyVolumes" -}}
{{- if include "gpugate.bundle" . -}}
{{- $bundle := .Values.policy.bundle -}}
- name: bundle
  emptyDir:
    sizeLimit: 64Mi
- name: token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                apiVersion: v1
                fieldPath: metadata.namespace
{{- if $bundle.keySecret }}
- name: bundle-key
  secret:
    secretName: {{ $bundle.keySecret | quote }}
    items:
      - key: cosign.pub
        path: cosign.pub
{{- else if $bundle.key }}
- name: bundle-key
  configMap:
    name: {{ include "gpugate.fullname" . }}-bundle-key
{{- end }}
{{- with include "gpugate.bundleCaName" . }}
- name: bundle-ca
  configMap:
    name: {{ . | quote }}
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- with $bundle.pullSecret }}
- name: bundle-login
  secret:
    secretName: {{ . | quote }}
    items:
      - key: .dockerconfigjson
        path: config.json
{{- end }}
{{- else -}}
- name: policy
  configMap:
    name: {{ include "gpugate.fullname" . }}-policy
{{- end }}
{{- end }}

{{/* Arguments, mounts and volumes of policies outside the library. */}}
{{- define "gpugate.policyPathArgs" -}}
{{- if .Values.policies.configMap }}
- --policy-path=/etc/gpugate/policies
{{- end }}
{{- if .Values.policies.image }}
- --policy-path=/etc/gpugate/policies-of-image
{{- end }}
{{- end }}

{{- define "gpugate.policyPathMounts" -}}
{{- if .Values.policies.configMap }}
- name: policies
  mountPath: /etc/gpugate/policies/{{ .Values.policies.organisation }}
  readOnly: true
{{- end }}
{{- if .Values.policies.image }}
- name: policies-of-image
  mountPath: /etc/gpugate/policies-of-image
  readOnly: true
{{- end }}
{{- end }}

{{- define "gpugate.policyPathVolumes" -}}
{{- with .Values.policies.configMap }}
- name: policies
  configMap:
    name: {{ . | quote }}
{{- end }}
{{- with .Values.policies.image }}
- name: policies-of-image
  image:
    reference: {{ . | quote }}
    pullPolicy: {{ $.Values.policies.imagePullPolicy }}
{{- end }}
{{- end }}

{{/* Namespaces that are not evaluated, as JSON: those of the policy file, and the namespace of the release. */}}
{{- define "gpugate.excludedNamespaces" -}}
{{ append (dig "excluded_namespaces" list .Values.policy) .Release.Namespace | uniq | sortAlpha | toJson }}
{{- end }}

{{/* Selector of the namespaces whose objects are sent. */}}
{{- define "gpugate.evaluatedNamespaces" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ include "gpugate.excludedNamespaces" . }}
  {{- with .Values.webhooks.onlyNamespaces }}
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ toJson . }}
  {{- end }}
{{- end }}

{{/* Match condition without the users of Karpenter, or empty. */}}
{{- define "gpugate.exemptKarpenter" -}}
{{- with .Values.webhooks.karpenterUsers -}}
- name: is-not-from-karpenter
  expression: "!(request.userInfo.username in ['{{ join "', '" . }}'])"
{{- end }}
{{- end }}

{{/*
Where API servers reach the webhook, and the fields that all entries of a configuration have.

`root`: the context of the chart; `configuration`: one of files/webhooks.json.
*/}}
{{- define "gpugate.webhookServer" -}}
clientConfig:
  {{- if .root.Values.webhooks.url }}
  url: {{ printf "%s/%s" .root.Values.webhooks.url .configuration.path | quote }}
  {{- else }}
  service:
    namespace: {{ .root.Release.Namespace | quote }}
    name: {{ include "gpugate.fullname" .root | quote }}
    path: /{{ .configuration.path }}
    port: 443
  {{- end }}
  {{- /* In the other modes the webhook or cert-manager writes `caBundle`. An upgrade must not remove it. */}}
  {{- if eq .root.Values.certificates.mode "provided" }}
  caBundle: {{ b64enc .root.Values.certificates.caBundle }}
  {{- end }}
timeoutSeconds: {{ get .root.Values.webhooks .configuration.timeoutValue | int }}
{{ toYaml .configuration.common }}
{{- end }}

{{/*
Webhook groups with `failurePolicy: Fail`, separated by commas; empty if there are none.
Their requests are denied while the webhook is unavailable.
*/}}
{{- define "gpugate.failingGroups" -}}
{{- $failing := list }}
{{- range $group := (.Files.Get "files/webhooks.json" | fromJson).groups }}
{{- $settings := get $.Values.webhooks $group }}
{{- if eq (get $settings "failurePolicy") "Fail" }}
{{- $failing = append $failing $group }}
{{- end }}
{{- if eq (get $settings "mutatingFailurePolicy") "Fail" }}
{{- $failing = append $failing (printf "%s (mutating)" $group) }}
{{- end }}
{{- end }}
{{- join ", " $failing }}
{{- end }}

{{/* Taint keys of `policy.platform`, as alternatives of a regular expression in a CEL string: "|KEY|KEY". */}}
{{- define "gpugate.platformTaints" -}}
{{- range $taints := dig "platform" "taints" dict .Values.policy }}
{{- range $taints }}
{{- include "gpugate.platformPattern" .key }}
{{- end }}
{{- end }}
{{- end }}

{{/* The resources and device classes of `policy.platform`, in the same form. */}}
{{- define "gpugate.platformResources" -}}
{{- range dig "platform" "accelerators" "resources" list .Values.policy }}
{{- include "gpugate.platformPattern" . }}
{{- end }}
{{- range dig "platform" "accelerators" "device_classes" list .Values.policy }}
{{- printf "deviceclass.resource.kubernetes.io/%s" . | include "gpugate.platformPattern" }}
{{- end }}
{{- end }}

{{/* A pattern with `*` as a regular expression. values.schema.json allows no other special characters. */}}
{{- define "gpugate.platformPattern" -}}
|{{ . | replace "." "\\\\." | replace "*" ".*" }}
{{- end }}

{{/* A duration of Prometheus, such as 1m30s, in milliseconds. */}}
{{- define "gpugate.milliseconds" -}}
{{- $total := 0 }}
{{- range $unit, $factor := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 }}
{{- /* 5m is not the beginning of 5ms. */}}
{{- $number := regexFind (printf "[0-9]+%s([0-9]|$)" $unit) $ | regexFind "^[0-9]+" }}
{{- $total = add $total (mul (int64 $number) $factor) }}
{{- end }}
{{- $total }}
{{- end }}

{{/* Settings of every Pod. */}}
{{- define "gpugate.podSettings" -}}
{{- /* A Service named gpugate would set GPUGATE_PORT, which gpugate reads as the default of --port. */ -}}
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Settings of every container. */}}
{{- define "gpugate.containerSettings" -}}
image: {{ include "gpugate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
command: [gpugate]
{{- end }}

{{/*
Annotations of an object of a Helm hook.

`root`: the context of the chart; `hook`: its events; `isJob`: whether it runs a command, after the other objects;
`isPod`: whether it is a Pod. Helm does not delete these objects on uninstall, so they are deleted after a failure too.
*/}}
{{- define "gpugate.hookAnnotations" -}}
{{- $own := dict "helm.sh/hook" .hook "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded,hook-failed" }}
{{- if .isJob }}
{{- /* Helm 3.18 and later print the log of a failed Job. */}}
{{- $_ := set $own "helm.sh/hook-output-log-policy" "hook-failed" }}
{{- else }}
{{- $_ := set $own "helm.sh/hook-weight" "-5" }}
{{- end }}
{{- $annotations := dict }}
{{- if .isPod }}
{{- $annotations = deepCopy .root.Values.podAnnotations }}
{{- end }}
{{- mergeOverwrite (dict) .root.Values.commonAnnotations $annotations $own | toYaml }}
{{- end }}

{{/*
Pod of a Helm hook, which runs one command.

`root`: the context of the chart; `serviceAccount`: its ServiceAccount; `args`: the command and its flags.
*/}}
{{- define "gpugate.hookPod" -}}
serviceAccountName: {{ .serviceAccount }}
restartPolicy: Never
{{ include "gpugate.podSettings" .root }}
containers:
  - name: gpugate
    {{- include "gpugate.containerSettings" .root | nindent 4 }}
    args:
      {{- toYaml .args | nindent 6 }}
      - --namespace={{ .root.Release.Namespace }}
      - --name={{ include "gpugate.fullname" .root }}
    resources:
      {{- toYaml .root.Values.resources | nindent 6 }}
    volumeMounts:
      - name: tmp
        mountPath: /tmp
volumes:
  - name: tmp
    emptyDir:
      medium: Memory
      sizeLimit: 16Mi
{{- end }}
