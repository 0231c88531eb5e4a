"""What a run of private training costs, by every method, with the assumptions it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sourdine.accounting.accountant import check_delta
from sourdine.accounting.bracket import Bracket
from sourdine.accounting.dpsgd import Sampler, Training, epsilon_of_training, step_loss, training_loss
from sourdine.accounting.renyi import DENSE_ORDERS, SOURCE_ORDERS, Conversion, Renyi
from sourdine.core.loss import Loss
