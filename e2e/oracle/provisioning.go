package main

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	provisioning "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// Types are the instance types that Karpenter can launch.
type Types []*cloudprovider.InstanceType

// Type says what an instance type has: its labels, its resources, and how much of these Pods cannot have.
type Type struct {
	Labels   map[string]string   `json:"labels"`
	Capacity corev1.ResourceList `json:"capacity"`
	Overhead corev1.ResourceList `json:"overhead"`
}

// Wanted is a Pod, with the pools that may launch a node for it and the Pods of DaemonSets. Karpenter compares the types in
// their order, but this one after the others.
type Wanted struct {
	Pod         corev1.Pod                         `json:"pod"`
	Pools       []*karpenter.NodePool              `json:"pools"`
	Daemons     []corev1.Pod                       `json:"daemons"`
	IgnoresDRA  bool                               `json:"ignoresDRA"`
	VolumesNeed [][]corev1.NodeSelectorRequirement `json:"volumesNeed"`
	Last        string                             `json:"last"`
}

const group = "karpenter.k8s.aws/"

// The labels that the AWS provider makes known, as its `pkg/apis/v1/labels.go` has them (v1.14.1).
var labelsOfAWS = []string{
	group + "capacity-reservation-id", group + "capacity-reservation-interruptible", group + "capacity-reservation-type",
	group + "instance-accelerator-count", group + "instance-accelerator-manufacturer", group + "instance-accelerator-name",
	group + "instance-capability-flex", group + "instance-category", group + "instance-cpu",
	group + "instance-cpu-manufacturer", group + "instance-cpu-sustained-clock-speed-mhz",
	group + "instance-ebs-bandwidth", group + "instance-encryption-in-transit-supported", group + "instance-family",
	group + "instance-generation", group + "instance-gpu-count", group + "instance-gpu-manufacturer",
	group + "instance-gpu-memory", group + "instance-gpu-name", group + "instance-hypervisor",
	group + "instance-local-nvme", group + "instance-memory", group + "instance-network-bandwidth",
	group + "instance-size", group + "instance-tenancy", group + "placement-group-id",
	group + "placement-group-partition", corev1.LabelWindowsBuild, "topology.k8s.aws/zone-id",
}

var (
	zones         = []string{"us-east-1a", "us-east-1b"}
	capacityTypes = []string{karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeSpot}
)

// learn makes instance types as the AWS provider does it (`pkg/providers/instancetype/types.go`, v1.14.1), each offered in
// two zones on demand and as Spot.
func (t *Types) learn(said []Type) (any, error) {
	karpenter.WellKnownLabels.Insert(labelsOfAWS...)
	log.SetLogger(logging.NopLogger)
	offerings := lo.FlatMap(zones, func(zone string, _ int) []*cloudprovider.Offering {
		return lo.Map(capacityTypes, func(capacity string, _ int) *cloudprovider.Offering {
			return &cloudprovider.Offering{Available: true, Price: 1, Requirements: scheduling.NewLabelRequirements(map[string]string{
				corev1.LabelTopologyZone: zone, karpenter.CapacityTypeLabelKey: capacity,
			})}
		})
	})
	for _, each := range said {
		required := scheduling.NewLabelRequirements(each.Labels)
		required.Add(
			scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
			scheduling.NewRequirement(corev1.LabelTopologyRegion, corev1.NodeSelectorOpIn, "us-east-1"),
			scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...),
			scheduling.NewRequirement(karpenter.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityTypes...),
			scheduling.NewRequirement(group+"instance-tenancy", corev1.NodeSelectorOpIn, "default", "dedicated"),
		)
		for _, label := range labelsOfAWS {
			if !required.Has(label) {
				required.Add(scheduling.NewRequirement(label, corev1.NodeSelectorOpDoesNotExist))
			}
		}
		*t = append(*t, &cloudprovider.InstanceType{
			Name:         each.Labels[corev1.LabelInstanceTypeStable],
			Requirements: required,
			Offerings:    offerings,
			Capacity:     each.Capacity,
			Overhead:     &cloudprovider.InstanceTypeOverhead{KubeReserved: each.Overhead},
		})
	}
	return len(*t), nil
}

// launching returns the names of the pools that launch a node for a Pod, each asked alone.
func (t *Types) launching(wanted Wanted) (any, error) {
	ctx := injection.WithControllerName(context.Background(), "provisioner")
	ctx = options.ToContext(ctx, &options.Options{IgnoreDRARequests: wanted.IgnoresDRA})
	found := []string{}
	for _, pool := range wanted.Pools {
		launches, err := t.launches(ctx, pool, wanted)
		if err != nil {
			return nil, err
		}
		if launches {
			found = append(found, pool.Name)
		}
	}
	return found, nil
}

func (t *Types) launches(ctx context.Context, pool *karpenter.NodePool, wanted Wanted) (bool, error) {
	pod := wanted.Pod.DeepCopy()
	pod.UID = "wanted"
	// Karpenter changes the Pods of DaemonSets while it asks which types they run on.
	daemons := lo.Map(wanted.Daemons, func(daemon corev1.Pod, _ int) *corev1.Pod { return daemon.DeepCopy() })
	volumes := map[types.UID][]scheduling.Requirements{}
	for _, term := range wanted.VolumesNeed {
		volumes[pod.UID] = append(volumes[pod.UID], scheduling.NewNodeSelectorRequirements(term...))
	}
	var nothing empty
	ticking := clock.RealClock{}
	cluster := state.NewCluster(ticking, nothing, nil)
	others, last := lo.FilterReject(*t, func(each *cloudprovider.InstanceType, _ int) bool { return each.Name != wanted.Last })
	pools := []*karpenter.NodePool{pool}
	offered := map[string][]*cloudprovider.InstanceType{pool.Name: append(others, last...)}
	topology, err := provisioning.NewTopology(ctx, nothing, cluster, nil, pools, offered, []*corev1.Pod{pod})
	if err != nil {
		return false, fmt.Errorf("topology: %w", err)
	}
	scheduler := provisioning.NewScheduler(ctx, nothing, pools, cluster, nil, topology, offered, daemons,
		events.NewRecorder(&record.FakeRecorder{}), ticking, volumes, nil)
	results, err := scheduler.Solve(ctx, []*corev1.Pod{pod})
	if err != nil {
		return false, fmt.Errorf("solve: %w", err)
	}
	return len(results.NewNodeClaims) == 1, nil
}

// empty is a cluster without objects.
type empty struct{ client.Client }

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return fmt.Errorf("%s does not exist", key)
}
